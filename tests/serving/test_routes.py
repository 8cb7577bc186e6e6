"""POST /v1/decide over HTTP: the fields of an answer, and that it is the in-process answer."""

from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from steelyard.app.deployment import open_deployment
from steelyard.settings import read_settings
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server
from support.waiting import check_that_it_stays

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_answer_holds_the_contracts_fields(client, make_request):
    response = client.post("/v1/decide", json=make_request())
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"].startswith("req_")
    answer = response.json()
    assert answer["id"].startswith("dec_")
    assert list(answer["decisions"]) == ["team", "refund", "urgency"]
    assert answer["fallback"] is None
    assert answer["stored"] is True
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


@pytest.fixture(scope="module")
def in_process_answer():
    settings = read_settings({"engine": "hashing"}, environ={})
    with open_deployment(settings) as deployment:
        yield deployment.answers.answer_dict


def test_the_wire_equals_the_process(client, in_process_answer, make_request):
    request = make_request(temperature=2)
    over_http = client.post("/v1/decide", json=request).json()
    in_process = in_process_answer(request)
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


@pytest.mark.parametrize("store", [True, False])
def test_the_answer_says_whether_it_is_stored(client, make_request, store):
    assert client.post("/v1/decide", json=make_request(store=store)).json()["stored"] is store


def test_the_setting_decides_where_the_request_does_not(make_request):
    with live_server(store="off") as server:
        answer = httpx.post(f"{server.url}/v1/decide", json=make_request()).json()
        assert answer["stored"] is False


def test_another_base_model_answers_when_it_is_named(make_request):
    with live_server(base_models="other=hashing") as server:

        def ask(**fields):
            return httpx.post(f"{server.url}/v1/decide", json=make_request(**fields)).json()

        default, other = ask(), ask(model="other")
        assert (default["model"], other["model"]) == ("hashing", "other")
        assert default["decisions"] != other["decisions"]
        server.scorer.failure = RuntimeError("the engine is made to fail")
        answer = ask()
        assert answer["decisions"] == other["decisions"]
        assert answer["fallback"] == {
            "from": "hashing",
            "to": "other",
            "reason": "engine_unavailable",
        }
        assert ask()["fallback"]["reason"] == "recently_unavailable"


KEY = {"Idempotency-Key": "key-1"}


def test_a_repeated_key_is_answered_with_the_same_bytes_and_not_run_again(make_request):
    with live_server() as server, httpx.Client(base_url=server.url) as client:
        first = client.post("/v1/decide", json=make_request(), headers=KEY)
        # The same payload in other bytes.
        spaced = json.dumps(make_request(), indent=2)
        again = client.post(
            "/v1/decide", content=spaced, headers={**KEY, "Content-Type": "application/json"}
        )
        assert again.content == first.content
        assert server.scorer.n_requests == 1
        conflict = client.post("/v1/decide", json=make_request(context="Other."), headers=KEY)
        assert_canonical_error(conflict, 409, "idempotency_conflict")
        assert server.scorer.n_requests == 1


def test_a_refused_request_does_not_use_up_its_key(make_request):
    with live_server() as server, httpx.Client(base_url=server.url) as client:
        refused = client.post("/v1/decide", json=make_request(decisions=[]), headers=KEY)
        assert refused.status_code == 422
        unknown = client.post("/v1/decide", json=make_request(model="nobody"), headers=KEY)
        assert unknown.status_code == 404
        assert client.post("/v1/decide", json=make_request(), headers=KEY).status_code == 200


def test_two_requests_with_one_key_at_the_same_time_run_once(make_request):
    with live_server() as server, ThreadPoolExecutor(2) as pool:
        server.scorer.may_answer.clear()

        def ask():
            return httpx.post(f"{server.url}/v1/decide", json=make_request(), headers=KEY)

        first = pool.submit(ask)
        assert server.scorer.started.wait(timeout=10)
        second = pool.submit(ask)
        check_that_it_stays(lambda: server.scorer.n_requests == 1, 0.1)
        server.scorer.may_answer.set()
        answers = [future.result(timeout=30) for future in (first, second)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].content == answers[1].content
        assert server.scorer.n_requests == 1


def test_the_end_of_an_accepted_request_is_terminal_for_its_key(make_request):
    with live_server() as server, httpx.Client(base_url=server.url) as client:
        server.scorer.failure = RuntimeError("the engine is made to fail")
        failed = client.post("/v1/decide", json=make_request(), headers=KEY)
        assert_canonical_error(failed, 503, "engine_unavailable", retryable=True)
        assert failed.headers["Idempotency-Status"] == "terminal"
        server.scorer.failure = None
        again = client.post("/v1/decide", json=make_request(), headers=KEY)
        assert_canonical_error(again, 503, "engine_unavailable", retryable=True)
        assert again.headers["Idempotency-Status"] == "terminal"
        assert again.headers["X-Operation-ID"] == failed.headers["X-Operation-ID"]
        other = client.post("/v1/decide", json=make_request(), headers={"Idempotency-Key": "2"})
        assert other.status_code == 200


def test_a_caller_that_went_away_finds_its_answer_under_its_key(make_request):
    with live_server() as server, httpx.Client(base_url=server.url) as client:
        server.scorer.may_answer.clear()
        with pytest.raises(httpx.ReadTimeout):
            client.post("/v1/decide", json=make_request(), headers=KEY, timeout=0.2)
        server.scorer.may_answer.set()
        answer = client.post("/v1/decide", json=make_request(), headers=KEY)
        assert answer.status_code == 200
        assert server.scorer.n_requests == 1


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
    limit = server.services.settings.body_bytes
    request = make_request(context="")
    request["context"] = "a" * (limit - len(json.dumps(request)))
    body = json.dumps(request).encode()
    assert len(body) == limit
    response = client.post("/v1/decide", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in {200, 422}


def test_every_response_has_its_own_request_id(client, make_request):
    ids = {client.post("/v1/decide", json=make_request()).headers["x-request-id"] for _ in range(5)}
    assert len(ids) == 5


def test_concurrent_requests_get_their_own_answers(client, in_process_answer, make_request):
    contexts = [f"Ticket {number}: {'paid twice' * number}" for number in range(16)]
    alone = [in_process_answer(make_request(context=context))["decisions"] for context in contexts]
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


@pytest.mark.parametrize("path", ["/v1/decide", "/v1/decide/estimate", "/v1/lint", "/v1/systemone"])
def test_a_setting_says_how_many_decisions_a_request_has(bounded_server, path):
    def ask(n: int) -> httpx.Response:
        ids = [f"d{place}" for place in range(n)]
        body = {
            "context": "Hi",
            "decisions": [{"id": id_, "kind": "binary", "question": "Is it?"} for id_ in ids],
        }
        if path == "/v1/systemone":
            question = {"type": "noul", "instructions": "Is it?"}
            body = {"model": "jev", "state": "Hi", "questions": dict.fromkeys(ids, question)}
        return httpx.post(f"{bounded_server.url}{path}", json=body)

    assert ask(70).status_code == 200
    assert "has 71 entries; give 1 to 70." in ask(71).text
    assert "is empty; give 1 to 70." in ask(0).text


def test_how_many_decisions_a_request_has_is_published(bounded_server):
    models = httpx.get(f"{bounded_server.url}/v1/models").json()["data"]
    assert models[0]["max_questions"] == 70
    limits = httpx.get(f"{bounded_server.url}/v1/onehot").json()["limits"]
    assert limits["decisions"] == 70


@pytest.fixture(scope="module")
def bounded_server():
    with live_server(max_decisions=70) as server:
        yield server
