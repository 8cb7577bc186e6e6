"""The list of jobs of all kinds, without a worker."""

from __future__ import annotations

import httpx
import pytest

from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import to_ndjson
from support.decisions.wordings import rows
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    home = str(tmp_path_factory.mktemp("home"))
    with (
        live_server(home=home, jobs="off", dataset_min_rows=1) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield http


@pytest.fixture(scope="module")
def queued(http):
    """A dataset, and a map and an evaluation of it that wait."""
    files = {
        side: (f"{side}.jsonl", to_ndjson(of), "application/x-ndjson")
        for side, of in {"training": rows(8), "evaluation": rows(4, start=8)}.items()
    }
    dataset_id = http.post("/v1/datasets", files=files, data={"name": "tickets"}).json()["id"]
    made = http.post("/v1/evaluations", json={"dataset_id": dataset_id, "models": ["hashing"]})
    [evaluation] = made.json()["data"]
    found = http.post("/v1/maps", json={"dataset_id": dataset_id}).json()
    return dataset_id, [found["id"], evaluation["id"]]


def test_jobs_of_all_kinds_stand_in_one_list(http, queued):
    dataset_id, ids = queued
    page = http.get("/v1/jobs").json()
    assert [job["id"] for job in page["data"]] == ids
    found, evaluation = page["data"]
    assert (found["kind"], found["noun"], found["status"]) == ("map", "map", "queued")
    assert (found["dataset"], found["dataset_version"], found["ended"]) == ("tickets", 1, None)
    assert evaluation["models"] == ["hashing"]
    assert evaluation["progress"]["steps"] == 4
    assert "started again" in evaluation["lost"]
    of_dataset = http.get("/v1/jobs", params={"dataset_id": dataset_id, "status": "queued"})
    assert of_dataset.json() == page
    assert http.get("/v1/jobs", params={"status": "failed"}).json()["data"] == []


def test_pages_go_on_across_kinds(http, queued):
    _, ids = queued
    first = http.get("/v1/jobs", params={"limit": 1}).json()
    assert [job["id"] for job in first["data"]] == ids[:1]
    assert first["has_more"]
    last = http.get("/v1/jobs", params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert [job["id"] for job in last["data"]] == ids[1:]
    assert not last["has_more"]


def test_kinds_are_chosen_and_unknown_ones_refused(http, queued):
    _, ids = queued
    only = http.get("/v1/jobs", params={"kind": "evaluation"}).json()["data"]
    assert [job["id"] for job in only] == ids[1:]
    both = http.get("/v1/jobs", params={"kind": "evaluation,map"}).json()["data"]
    assert [job["id"] for job in both] == ids
    refused = http.get("/v1/jobs", params={"kind": "nap"})
    assert_canonical_error(refused, 422, "invalid_request", message="fine_tune")
    refused = http.get("/v1/jobs", params={"cursor": "map_none"})
    assert_canonical_error(refused, 422, "invalid_request")
