"""``POST /v1/decisions`` over HTTP: OpenAI's shape of request, answer and error."""

from __future__ import annotations

import httpx
import pytest

from support.servers.live_server import LiveServer

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

REQUEST = {
    "model": "hashing",
    "input": [{"type": "message", "role": "user", "content": "My card was charged twice."}],
    "questions": [
        {"type": "predicate", "name": "refund", "instructions": "Money is asked back."},
        {
            "type": "choice",
            "instructions": "Who should own this?",
            "choices": [{"value": "abstain"}, {"value": True, "description": "us"}],
        },
        {
            "type": "score",
            "instructions": "How urgent is it?",
            "levels": [{"label": "low"}, {"label": "high", "description": "today"}],
        },
    ],
}
ERROR_FIELDS = {"message", "type", "param", "code", "retryable", "request_id", "details"}


@pytest.fixture
def ask(client: httpx.Client):
    def post(headers: dict | None = None, **fields: object):
        return client.post("/v1/decisions", json={**REQUEST, **fields}, headers=headers)

    return post


def assert_error(response: httpx.Response, status: int, code: str, type_: str) -> dict:
    assert response.status_code == status, response.text
    body = response.json()
    assert body.keys() == {"error"}
    error = body["error"]
    assert error.keys() == ERROR_FIELDS
    assert (error["code"], error["type"]) == (code, type_)
    assert error["request_id"] == response.headers["X-Request-ID"]
    return error


def test_answer(ask):
    response = ask()
    assert response.status_code == 200
    body = response.json()
    predicate, choice, score = body["answers"]
    assert (predicate["type"], predicate["name"]) == ("predicate", "refund")
    assert (choice["type"], choice["name"]) == ("choice", None)
    assert [entry["value"] for entry in choice["probabilities"]] == ["abstain", True]
    assert choice["choice"] in ("abstain", True)
    assert [(e["value"], e["label"]) for e in score["probabilities"]] == [(0, "low"), (1, "high")]
    assert score["score"] == pytest.approx(score["probabilities"][1]["probability"])
    usage = body["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert body["model"] == "hashing"


def test_128_questions(server: LiveServer, ask):
    question = REQUEST["questions"][0]
    assert len(ask(questions=[question] * 128).json()["answers"]) == 128
    assert server.scorer.n_requests == 1
    error = assert_error(
        ask(questions=[question] * 129), 422, "invalid_request", "invalid_request_error"
    )
    assert error["param"] == "questions"


def test_a_key_replays_the_answer(server: LiveServer, ask):
    headers = {"Idempotency-Key": "decisions-1"}
    first, again = ask(headers=headers), ask(headers=headers)
    assert again.content == first.content
    assert server.scorer.n_requests == 1
    conflict = ask(headers=headers, input="Other.")
    assert_error(conflict, 409, "idempotency_conflict", "invalid_request_error")


def test_feedback_is_given_on_as_many_as_may_be_asked(client: httpx.Client, ask):
    id_ = ask(questions=[{"type": "predicate", "instructions": f"Is it {n}?"} for n in range(128)])
    outcomes = {str(n): "yes" for n in range(128)}
    response = client.post(
        "/v1/feedback", json={"decision_id": id_.json()["id"], "outcomes": outcomes}
    )
    assert len(response.json()["recorded"]) == 128


def test_feedback_goes_by_place(client: httpx.Client, ask):
    id_ = ask().json()["id"]
    outcomes = {"0": "yes", "1": "true", "2": "high"}
    response = client.post("/v1/feedback", json={"decision_id": id_, "outcomes": outcomes})
    assert response.json()["recorded"] == ["0", "1", "2"]


def test_invalid_request_names_the_first_field(ask):
    questions = [{"type": "choice", "instructions": "?", "choices": [{"value": "a"}]}]
    error = assert_error(ask(questions=questions), 422, "invalid_request", "invalid_request_error")
    assert error["param"] == "questions[0].choices"
    assert error["details"][0]["path"] == ["body", "questions", 0, "choices"]
    assert not error["retryable"]


def test_images(ask):
    image = {"type": "input_image", "image_url": "https://example.org/a.png"}
    response = ask(input=[{"role": "user", "content": [image]}])
    error = assert_error(response, 422, "images_not_supported", "invalid_request_error")
    assert error["param"] == "input[0].content[0]"


def test_a_long_context_is_told_by_its_name_here(ask):
    response = ask(input="word " * 66_000)
    error = assert_error(response, 422, "context_too_long", "invalid_request_error")
    assert error["param"] == "input"


def test_unknown_model(ask):
    error = assert_error(ask(model="gpt-6-luna"), 404, "not_found", "invalid_request_error")
    assert error["param"] is None


def test_media_type(client: httpx.Client):
    response = client.post("/v1/decisions", content=b"{}", headers={"Content-Type": "text/csv"})
    assert_error(response, 415, "unsupported_media_type", "invalid_request_error")


def test_server_errors(server: LiveServer, ask):
    server.scorer.failure = RuntimeError("broken")
    response = ask()
    error = assert_error(response, 503, "engine_unavailable", "server_error")
    assert error["retryable"]
    assert response.headers["Retry-After"]
