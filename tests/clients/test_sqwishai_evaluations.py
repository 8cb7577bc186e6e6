"""sqwishai 0.5.0 asks for evaluations and follows them; nothing of it is changed."""

from __future__ import annotations

import asyncio

import pytest
from sqwishai import APIError, AsyncOneHot, OneHot

from steelyard.app.job_runtime import open_worker
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import settings_of
from support.servers.live_server import live_server
from support.waiting import wait_until

#: What every evaluation has, whatever its status.
FIELDS = {
    "id",
    "dataset_id",
    "dataset_version",
    "model_id",
    "model_sha256",
    "model_label",
    "model_name",
    "version",
    "status",
    "created_at",
    "updated_at",
    "generation",
    "training_job_id",
    "dataset_sha256",
    "evaluation_sha256",
    "method",
    "evaluation_rows",
    "decisions",
    "completed_rows",
    "metrics",
    "error",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with live_server(home=home, jobs="off", base_models="second=hashing") as server:
        yield server


@pytest.fixture
def client(server):
    with OneHot(server.url, api_key="any-key", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def worker(server):
    """Jobs run while tests ask for this."""

    def run():
        return open_worker(settings_of(server.services.settings.home, base_models="second=hashing"))

    return run


def test_the_whole_way(client, worker):
    dataset = client.datasets.create("tickets", make_rows(30), evaluation_fraction=0.5)
    submission = client.evaluations.create(dataset["id"], ["hashing", "second"])
    assert (submission["queued"], submission["reused"]) == (2, 0)
    assert submission["dataset_id"] == dataset["id"]
    first = submission["data"][0]
    assert set(first) == FIELDS
    assert client.evaluations.cancel(first["id"])["status"] == "cancelled"
    assert client.evaluations.retry(first["id"])["generation"] == 2
    assert client.evaluations.create(dataset["id"], ["hashing"])["reused"] == 1
    with worker():
        unfinished = {"status": ["queued", "running"]}
        wait_until(lambda: not client.evaluations.list(dataset["id"], **unfinished)["data"])
    found = list(client.evaluations.iter(dataset["id"], page_size=1, status="succeeded"))
    assert {one["id"] for one in found} == {one["id"] for one in submission["data"]}
    assert all(one["metrics"]["n"] == one["decisions"] for one in found)
    assert client.evaluations.get(first["id"])["completed_rows"] == first["evaluation_rows"]


def test_refusals(client):
    with pytest.raises(APIError) as missing:
        client.evaluations.create("ds_none", ["hashing"])
    assert (missing.value.status, missing.value.code) == (404, "not_found")
    dataset = client.datasets.create("more", make_rows(10, start=50))
    with pytest.raises(APIError) as unknown:
        client.evaluations.create(dataset["id"], ["nobody"])
    assert unknown.value.code == "not_found"
    evaluation = client.evaluations.create(dataset["id"], ["hashing"])["data"][0]
    with pytest.raises(APIError) as waiting:
        client.evaluations.retry(evaluation["id"])
    assert waiting.value.status == 409
    client.evaluations.cancel(evaluation["id"])


def test_asynchronous(server):
    async def use():
        async with AsyncOneHot(server.url, api_key="any-key", max_retries=0) as client:
            dataset = await client.datasets.create("async", make_rows(10, start=80))
            submission = await client.evaluations.create(dataset["id"], ["hashing"])
            evaluation = await client.evaluations.cancel(submission["data"][0]["id"])
            page = await client.evaluations.list(dataset["id"], limit=5)
            return evaluation, page

    evaluation, page = asyncio.run(use())
    assert evaluation["status"] == "cancelled"
    assert [one["id"] for one in page["data"]] == [evaluation["id"]]
