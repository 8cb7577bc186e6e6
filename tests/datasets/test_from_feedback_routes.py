"""``POST /v1/datasets/from-feedback``: outcomes become rows of datasets."""

from __future__ import annotations

import httpx
import pytest

from support.api.error_shape import assert_canonical_error
from support.families.grown_family import post
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

QUESTION = {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}
ROUTE = "/v1/datasets/from-feedback"


@pytest.fixture(scope="module")
def running_server():
    with live_server(jobs="off") as server:
        yield server


@pytest.fixture(scope="module")
def session_client(running_server):
    with httpx.Client(base_url=running_server.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def decided(session_client):
    """Ids of eight stored decisions, of which the first six got feedback."""
    ids = []
    for number in range(8):
        request = {"context": f"Order {number} came twice.", "decisions": [QUESTION]}
        ids.append(post(session_client, "/v1/decide", request)["id"])
    for number, decision_id in enumerate(ids[:6]):
        observed = {"refund": ("yes", "no")[number % 2]}
        post(session_client, "/v1/feedback", {"decision_id": decision_id, "outcomes": observed})
    return ids


def test_a_dataset_is_made_and_grows_by_new_rows(client, decided):
    keyed = {"Idempotency-Key": "from-feedback-1"}
    body = {"name": "observed", "model": "hashing", "evaluation_fraction": 0.5}
    made = client.post(ROUTE, json=body, headers=keyed)
    assert made.is_success, made.text
    told = made.json()
    assert (told["rows"], told["method"], told["version"]) == (6, "sft", 1)
    counts = told["feedback"]
    assert (counts["stored"], counts["added"], counts["without_feedback"]) == (8, 6, 2)
    again = client.post(ROUTE, json=body, headers=keyed)
    assert again.json() == told
    assert again.headers["Idempotency-Replayed"] == "true"
    rows = client.get(f"/v1/datasets/{told['id']}/rows").json()["data"]
    labels = {row["context"]: row["targets"]["refund"] for row in rows}
    assert labels["Order 1 came twice."] == {"no": 1.0}
    stale = client.post(ROUTE, json={"dataset_id": told["id"]})
    assert_canonical_error(stale, 422, "no_new_rows")
    report = {"decision_id": decided[6], "outcomes": {"refund": "yes"}}
    post(client, "/v1/feedback", report)
    wrong = client.post(ROUTE, json={"dataset_id": told["id"], "dataset_version": 2})
    assert_canonical_error(wrong, 409, "dataset_changed")
    grown = post(client, ROUTE, {"dataset_id": told["id"], "dataset_version": 1})
    assert (grown["version"], grown["rows"]) == (2, 7)
    assert grown["feedback"]["already_there"] == 6


@pytest.mark.parametrize(
    ("body", "code", "status"),
    [
        ({"dataset_id": "ds_none"}, "not_found", 404),
        ({"name": "none", "since": 4e9}, "no_rows", 422),
        ({"name": "none", "decisions": ["nobody"]}, "no_rows", 422),
        ({}, "invalid_request", 422),
        ({"name": "both", "dataset_id": "ds_1"}, "invalid_request", 422),
        ({"name": "one", "evaluation_fraction": 7, "since": "now"}, "invalid_request", 422),
    ],
)
def test_what_cannot_be_used(client, decided, body, code, status):
    assert_canonical_error(client.post(ROUTE, json=body), status, code)
