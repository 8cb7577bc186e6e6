"""GET /metrics: figures of answers, apart for each application."""

from __future__ import annotations

import httpx
import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from steelyard.errors import InsufficientCreditError
from steelyard.operations.write import Replay
from steelyard.scoring.lower import CONTEXT_STATES, QUESTION_STATES
from support.servers.stand_ins import ANSWER, REQUEST, stand_in_server

RESULTS = ("hit", "miss")

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture
def server():
    with stand_in_server() as running:
        yield running


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.url) as http:
        yield http


def figures(client):
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_requests_decisions_and_tokens_are_counted(client):
    for _ in range(2):
        client.post("/v1/decide", json=REQUEST)
    found = figures(client)
    assert found["steelyard_requests_total", "/v1/decide", "200", "POST"] == 2
    assert found["steelyard_request_seconds_count", "/v1/decide"] == 2
    assert found["steelyard_decisions_total",] == 6
    assert found["steelyard_input_tokens_total",] == 14
    assert found["steelyard_queue_waiting", "stand-in"] == 0


@pytest.mark.parametrize(
    ("name", "store"), [("question", QUESTION_STATES), ("context", CONTEXT_STATES)]
)
def test_cached_states_are_counted(client, name, store):
    before = figures(client)
    model, states = -1, np.ones((2, 384), np.float32)
    try:
        store.put(model, {b"known": states})
        store.get(model, [b"known", b"unknown", b"other"])
        found = figures(client)
    finally:
        store.forget(model)
    name = f"steelyard_{name}_cache"
    counted = [
        found[f"{name}_lookups_total", r] - before[f"{name}_lookups_total", r] for r in RESULTS
    ]
    assert counted == [1, 2]
    assert found[f"{name}_evictions_total",] == before[f"{name}_evictions_total",]
    assert found[f"{name}_bytes",] >= before[f"{name}_bytes",] + states.nbytes


def test_a_replay_is_counted_as_that_alone(client, server):
    server.decisions.replay = Replay(msgspec.json.encode(ANSWER))
    client.post("/v1/decide", json=REQUEST)
    found = figures(client)
    assert found["steelyard_replays_total",] == 1
    assert found["steelyard_decisions_total",] == 0


def test_refusals_are_counted_by_code(client, server):
    server.decisions.failure = InsufficientCreditError("No credit.")
    client.post("/v1/decide", json=REQUEST)
    client.get("/v1/nothing")
    found = figures(client)
    assert found["steelyard_errors_total", "insufficient_credit"] == 1
    assert found["steelyard_errors_total", "not_found"] == 1
    assert found["steelyard_requests_total", "404", "GET", "unmatched"] == 1


def test_paths_and_methods_cannot_make_figures_without_end(client):
    for number in range(5):
        client.get(f"/v1/nothing/{number}")
        client.request(f"M{number}", "/v1/decide")
    found = figures(client)
    assert found["steelyard_requests_total", "404", "GET", "unmatched"] == 5
    assert found["steelyard_requests_total", "405", "other", "unmatched"] == 5


def test_two_applications_count_apart(client):
    client.post("/v1/decide", json=REQUEST)
    with stand_in_server() as other, httpx.Client(base_url=other.url) as http:
        assert figures(http).get(("steelyard_requests_total", "/v1/decide", "200", "POST")) is None
