"""POST /v1/decide over HTTP: what an answer holds, and that it is the in-process answer."""

from __future__ import annotations

import json
import math
import threading

import pytest


def test_answer_holds_the_contracts_fields(client, make_request):
    response = client.post("/v1/decide", json=make_request())
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    answer = response.json()
    assert answer["id"].startswith("dec_")
    assert list(answer["decisions"]) == ["team", "refund", "urgency"]
    assert answer["fallback"] is None
    assert answer["stored"] is False
    assert answer["charge"]["amount_usd"] == answer["charge"]["reserved_usd"] == "0"
    assert answer["charge"]["operation_id"].startswith("op_")
    assert answer["usage"]["input_tokens"] > 0
    assert answer["usage"]["tokenizer"].keys() == {"name", "revision", "sha256"}
    assert answer["timing_ms"].keys() >= {"queue", "render", "score", "total"}
    assert all(math.isfinite(value) and value >= 0 for value in answer["timing_ms"].values())


def test_probabilities_follow_the_outcomes_order_and_sum_to_one(client, make_request):
    decisions = client.post("/v1/decide", json=make_request()).json()["decisions"]
    assert list(decisions["team"]["probabilities"]) == ["billing", "shipping", "other"]
    assert list(decisions["refund"]["probabilities"]) == ["yes", "no"]
    assert list(decisions["urgency"]["probabilities"]) == ["0", "1", "2"]
    for decision in decisions.values():
        probabilities = decision["probabilities"]
        assert abs(sum(probabilities.values()) - 1) <= 1e-6
        assert decision["top"] == max(probabilities, key=probabilities.__getitem__)
        assert decision["p_top"] == probabilities[decision["top"]]
        assert decision["action"] == decision["top"]
    expected = sum(i * p for i, p in enumerate(decisions["urgency"]["probabilities"].values()))
    assert decisions["urgency"]["expected_level"] == pytest.approx(expected)


def test_the_wire_gives_what_the_process_gives(client, server, make_request):
    request = make_request(temperature=2)
    over_http = client.post("/v1/decide", json=request).json()
    in_process = server.deployment.answers.answer_dict(request)
    assert over_http["decisions"] == in_process["decisions"]
    assert over_http["temperature"] == in_process["temperature"]
    assert over_http["usage"] == in_process["usage"]


def test_a_policy_gives_the_action(client, make_request):
    decision = {
        "id": "refund",
        "kind": "binary",
        "question": "Refund?",
        "policy": {"action_costs": {"pay": {"yes": 0, "no": 5}, "ask": {"yes": 9, "no": 9}}},
    }
    result = client.post("/v1/decide", json=make_request(decisions=[decision])).json()
    policy = result["decisions"]["refund"]["policy"]
    assert policy["action"] == result["decisions"]["refund"]["action"] == "pay"
    assert policy["expected_costs"].keys() == {"pay", "ask"}


@pytest.mark.parametrize("context", ["", "   ", {"subject": "Refund", "lines": [1, 2]}, ["a", 1]])
def test_any_json_context_is_read(client, make_request, context):
    assert client.post("/v1/decide", json=make_request(context=context)).status_code == 200


def test_store_is_echoed_as_not_stored(client, make_request):
    assert client.post("/v1/decide", json=make_request(store=True)).json()["stored"] is False


def test_chunked_body_and_charset_are_read(client, make_request):
    body = json.dumps(make_request()).encode()
    chunks = (body[start : start + 100] for start in range(0, len(body), 100))
    response = client.post(
        "/v1/decide",
        content=chunks,
        headers={
            "Content-Type": 'application/json; charset="UTF-8"',
            "Content-Encoding": "identity",
        },
    )
    assert response.status_code == 200


def test_a_body_of_just_under_the_bound_is_read(client, make_request, server):
    # The context is refused for its tokens, not the body for its bytes; or it is answered.
    limit = server.deployment.settings.body_bytes
    request = make_request(context="")
    request["context"] = "a" * (limit - len(json.dumps(request)))
    body = json.dumps(request).encode()
    assert len(body) == limit
    response = client.post("/v1/decide", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in {200, 422}


def test_every_response_has_its_own_request_id(client, make_request):
    ids = {client.post("/v1/decide", json=make_request()).headers["x-request-id"] for _ in range(5)}
    assert len(ids) == 5


def test_concurrent_requests_get_their_own_answers(client, server, make_request):
    contexts = [f"Ticket {number}: {'paid twice' * number}" for number in range(16)]
    alone = [
        server.deployment.answers.answer_dict(make_request(context=context))["decisions"]
        for context in contexts
    ]
    together: dict[int, object] = {}

    def ask(number: int) -> None:
        request = make_request(context=contexts[number])
        together[number] = client.post("/v1/decide", json=request).json()["decisions"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(contexts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, decisions in enumerate(alone):
        for name, decision in decisions.items():
            assert together[number][name]["probabilities"] == pytest.approx(
                decision["probabilities"], abs=1e-5
            )
