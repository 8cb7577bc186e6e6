"""``steelyard review``: reviews of a server from the shell."""

from __future__ import annotations

import json
import re

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
    rows = make_rows(13)
    for row in rows[10:]:
        row["metadata"] = {"by": "expert"}
    client.datasets.create("tickets", rows)
    review = run("start", "tickets", "--name", "first").strip()
    [listed] = json.loads(run("list", "--dataset", "tickets", "--json"))["data"]
    assert (listed["id"], listed["name"]) == (review, "first")
    assert "13 rows assigned, 7 of them to two, 3 known: ann 10, bob 10." in run(
        "assign", review, "ann", "bob", "--overlap", "0.5", "--known", "0.25"
    )
    said = {"route": "billing", "refund": "yes"}
    for row in client.drafts.rows(review, "assigned", reviewer="ann").data:
        client.drafts.answer(review, row.row, said, reviewer="ann")
    shown = run("show", review)
    assert "Undecided rows without a reviewer: 0." in shown
    assert re.search(r"ann +10 +10 +10 +[01] of [123] \(0\.\d\d to [01]\.\d\d\)", shown)
    assert "10 rows moved, 0 stay." in run("move", review, "bob", "--to", "cy")
