"""Datasets through sqwishai 0.5.0, and the file uploads of 0.3.6, unchanged."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from sqwishai import APIError, AsyncOneHot, OneHot

from support.datasets.dataset_rows import make_row_dict, make_rows, to_ndjson
from support.servers.live_server import LiveServer


@pytest.fixture
def client(server: LiveServer):
    with OneHot(server.url, api_key="any-key", max_retries=0) as client:
        yield client


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tickets.jsonl"
    path.write_bytes(to_ndjson(make_rows(30)))
    return path


def test_rows_in_every_form_are_the_same_dataset(client: OneHot, file):
    by_path = client.datasets.create("tickets", file, evaluation_fraction=0.5)
    by_bytes = client.datasets.create("tickets", file.read_bytes())
    by_list = client.datasets.create("tickets", make_rows(30), max_price_usd="0.1")
    assert len({made["sha256"] for made in (by_path, by_bytes, by_list)}) == 1
    assert by_path["split"]["evaluation"] == 15
    assert by_list["method"] == "sft"


def test_sides(client: OneHot):
    made = client.datasets.create("sides", training=make_rows(5), evaluation=make_rows(5, 5))
    sides = [client.datasets.download(made["id"], side) for side in ("training", "evaluation")]
    assert [len(side.splitlines()) for side in sides] == [5, 5]
    only = client.datasets.create("only", evaluation=make_rows(3))
    assert only["evaluation_only"]


def test_one_key_makes_one_dataset(client: OneHot, file):
    first = client.datasets.create("tickets", file, idempotency_key="sq-ds-1")
    assert client.datasets.create("tickets", file, idempotency_key="sq-ds-1") == first
    with pytest.raises(APIError) as caught:
        client.datasets.create("other", file, idempotency_key="sq-ds-1")
    assert caught.value.code == "idempotency_conflict"


def test_the_life_of_a_dataset(client: OneHot, file):
    made = client.datasets.create("tickets", file)
    page = client.datasets.rows(made["id"], limit=10, partition="training")
    assert (page["total"], len(page["data"]), page["has_more"]) == (24, 10, True)
    added = client.datasets.add_rows(made["id"], make_rows(10, 30), evaluation_fraction=0.5)
    assert (added["version"], added["rows"]) == (2, 40)
    newest, first = client.datasets.versions(made["id"])
    assert (newest["added"], first["added"]) == (10, 30)
    assert client.datasets.rows(made["id"], version=1)["total"] == 30
    old = client.datasets.download(made["id"], "training", version=1)
    assert len(old.splitlines()) == 24
    got = client.datasets.get(made["id"])
    assert got["storage_window"] is None
    assert got["prompt_tuning"]["decisions"]
    assert client.datasets.rename(made["id"], "renamed")["name"] == "renamed"
    assert client.datasets.restore(made["id"])["archived_at"] is None
    assert client.datasets.labels_to_check(made["id"])["data"] == []
    assert made["id"] in {dataset["id"] for dataset in client.datasets.iter(page_size=2)}
    assert list(client.datasets.iter(archived=True)) == []
    assert client.datasets.delete(made["id"]) == {"id": made["id"], "deleted": True}
    with pytest.raises(APIError) as caught:
        client.datasets.get(made["id"])
    assert (caught.value.status, caught.value.code) == (410, "dataset_deleted")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([make_row_dict("a", targets={"route": "nobody"})] * 2, "invalid_example"),
        (make_rows(1), "too_few_rows"),
        (b"", "no_rows"),
    ],
)
def test_refusals(client: OneHot, rows, code):
    with pytest.raises(APIError) as caught:
        client.datasets.create("bad", rows)
    assert caught.value.code == code
    if code == "invalid_example":
        assert caught.value.details[0]["path"][:3] == ["body", "examples", 0]


def test_refusals_of_added_rows(client: OneHot, file):
    made = client.datasets.create("tickets", file)
    with pytest.raises(APIError) as caught:
        client.datasets.add_rows(made["id"], file)
    assert (caught.value.status, caught.value.code) == (422, "no_new_rows")


def test_asynchronously(server: LiveServer, file):
    async def ask() -> int:
        async with AsyncOneHot(server.url, api_key="any-key") as client:
            made = await client.datasets.create("tickets", file)
            return (await client.datasets.rows(made["id"]))["total"]

    assert asyncio.run(ask()) == 30


OLDER = """
import json
import sys

from sqwishai import OneHot

url, lines, more, table = sys.argv[1:]
seen = {}
with OneHot(url, api_key="any-key", max_retries=0) as client:
    seen["made"] = client.datasets.upload(lines, name="caf\\u00e9 tickets", evaluation_fraction=0.5)
    made = seen["made"]["id"]
    seen["added"] = client.datasets.upload_rows(made, more, family="router")
    seen["table"] = client.datasets.upload_rows(made, table)
    seen["rows"] = client.datasets.rows(made)["total"]
    seen["versions"] = client.datasets.versions(made)
    seen["lines"] = len(client.datasets.download(made).splitlines())
print(json.dumps(seen))
"""


@pytest.fixture(scope="session")
def installed(client_folder, pip_install):
    folder = client_folder("sqwishai-0.3.6")
    pip_install("sqwishai==0.3.6", folder)
    return folder


def test_file_uploads_of_the_older_client(server: LiveServer, installed, file, tmp_path):
    more, table = tmp_path / "more.jsonl", tmp_path / "more.csv"
    more.write_bytes(to_ndjson(make_rows(5, 30)))
    table.write_text("context,refund\nAnother one,no\n")
    done = subprocess.run(
        [sys.executable, "-c", OLDER, server.url, str(file), str(more), str(table)],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["made"]["name"] == "café tickets"
    assert seen["made"]["split"]["evaluation"] == 15
    assert seen["rows"] == seen["lines"] == 36
    versions = [(one["added_via"], one["added_from"]) for one in seen["versions"]]
    assert versions == [("csv", None), ("jsonl", "router"), ("jsonl", None)]
