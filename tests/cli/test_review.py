"""``steelyard review``: reviews of a server from the shell."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from steelyard.cli.main import main
from steelyard.client import Client, ClientOptions
from support.datasets.dataset_rows import make_rows
from support.servers.live_server import live_server


@pytest.fixture(scope="module")
def client():
    with live_server() as server, Client(ClientOptions(server.url)) as client:
        yield client


@pytest.fixture
def run(client):
    """Run ``steelyard review …`` against the server; return what it prints."""

    def run(command, *arguments):
        given = ["review", command, "--url", client.url, *map(str, arguments)]
        result = CliRunner().invoke(main, given)
        assert result.exit_code == 0, (result.output, result.stderr)
        return result.stdout

    return run


def test_rows_of_a_review_are_assigned_and_moved(client, run):
    client.datasets.create("tickets", make_rows(10))
    review = run("start", "tickets", "--name", "first").strip()
    [listed] = json.loads(run("list", "--dataset", "tickets", "--json"))["data"]
    assert (listed["id"], listed["name"]) == (review, "first")
    assert "10 rows assigned, 5 of them to two: ann 7, bob 8." in run(
        "assign", review, "ann", "bob", "--overlap", "0.5"
    )
    assert "0 undecided rows have no reviewer." in run("show", review)
    assert "7 rows moved, 0 stay." in run("move", review, "ann", "--to", "cy")
