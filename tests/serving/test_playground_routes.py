"""POST /v1/playground/decide: decide with fewer decisions, nothing stored and nothing charged."""

from __future__ import annotations

import pytest

from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

PATH = "/v1/playground/decide"


def test_answers_like_decide_without_storing(client, make_request):
    answer = client.post(PATH, json=make_request(store=True)).json()
    decided = client.post("/v1/decide", json=make_request()).json()
    assert answer["decisions"] == decided["decisions"]
    assert answer["stored"] is False
    assert answer["charge"]["amount_usd"] == "0"
    assert answer["charge"]["reserved_usd"] == "0"


def test_eight_decisions_are_answered_and_nine_refused(client, server, make_request):
    def ask(n_decisions: int):
        decisions = [
            {"id": f"d{number}", "kind": "binary", "question": "Is it urgent?"}
            for number in range(n_decisions)
        ]
        return client.post(PATH, json=make_request(decisions=decisions))

    assert len(ask(8).json()["decisions"]) == 8
    server.scorer.reset()
    assert_canonical_error(ask(9), 422, "invalid_request", path=["body", "decisions"], message="8")
    assert server.scorer.n_requests == 0


def test_a_context_longer_than_the_free_ones_is_refused(client, make_request):
    body = make_request(context="word " * 4_096)
    response = client.post("/v1/playground/decide", json=body)
    assert_canonical_error(response, 422, "context_too_long", message="4096 are allowed")
    assert response.json()["error"]["details"][0]["path"] == ["body", "context"]
    assert client.post("/v1/decide", json=body).status_code == 200


def test_a_bad_bearer_is_ignored(client, make_request):
    response = client.post(PATH, json=make_request(), headers={"Authorization": "Bearer nonsense"})
    assert response.status_code == 200


def test_only_a_base_model_answers(client, server, make_request):
    response = client.post(PATH, json=make_request(model="router@3"))
    assert_canonical_error(response, 422, "invalid_request", path=["body", "model"])
    assert server.scorer.n_requests == 0
