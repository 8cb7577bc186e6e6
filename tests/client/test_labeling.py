"""``client.labeling``, blocking and asynchronous."""

from __future__ import annotations

import asyncio
import json

import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.client import NoAnswerInTimeError
from support.models.teaching import SHARED, is_even, queries, taught_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

ROWS = [json.loads(line) for line in queries(6).splitlines()]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with taught_server(home, {"even": is_even, "sure": lambda _: 0.9}) as (server, _):
        yield server


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def ready(server, client):
    """A job whose labels are ready."""
    source = client.labeling.upload("queries", ROWS)
    with open_worker(server.services.settings):
        return client.labeling.wait(client.labeling.create(source.id, decisions=SHARED))


def test_labels_become_a_dataset(client, ready):
    assert ready.status == "review_ready"
    results = list(client.labeling.results(ready.id))
    accepted = [one.index for one in results if one.agreement]
    assert accepted == [0, 2, 4]
    dataset = client.labeling.finalize(ready.id, accepted, evaluation_fraction=0.5)
    assert dataset.rows == 3
    assert client.labeling.finalize(ready.id, accepted, evaluation_fraction=0.5).id == dataset.id
    assert client.labeling.get(ready.id).dataset_id == dataset.id
    assert ready.id in [one.id for one in client.labeling.list(status="finalized")]


def test_sources(client, tmp_path):
    assert [one.id for one in client.labeling.teachers().data] == ["even", "sure"]
    path = tmp_path / "queries.jsonl"
    path.write_bytes(queries(2))
    source = client.labeling.upload("file", path)
    assert client.labeling.source(source.id) == source
    assert source.id in [one.id for one in client.labeling.sources(page_size=1)]
    job = client.labeling.create(source.id, teacher_models="even", decisions=SHARED)
    with pytest.raises(NoAnswerInTimeError, match="queued"):
        client.labeling.wait(job, timeout_s=0.01)
    assert client.labeling.cancel(job.id).status == "cancelled"
    assert client.labeling.wait(job).status == "cancelled"
    assert client.labeling.delete_source(source.id).deleted
    assert client.labeling.get(job.id).status == "deleted"


def test_asynchronous(server, ready):
    async def read():
        async with steelyard.connect_async(server.url) as client:
            found = [one.index async for one in client.labeling.results(ready.id)]
            return found, (await client.labeling.wait(ready.id)).id

    assert asyncio.run(read()) == (list(range(6)), ready.id)
