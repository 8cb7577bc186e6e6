"""TypeSafe's routes over HTTP."""

from __future__ import annotations

import json

import httpx
import pytest

from support.api.error_shape import assert_canonical_error
from support.servers.live_server import LiveServer

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

REQUEST = {
    "model": "jev-latest",
    "state": {"message": "My card was charged twice for order 118."},
    "questions": {
        "refund": {"type": "noul", "instructions": "Does the writer ask for money back?"},
        "team": {
            "type": "choice",
            "instructions": "Which team should own this?",
            "criteria": {"billing": "charges", "abstain": None, "other": {"any": ["thing"]}},
        },
        "urgency": {"type": "score", "instructions": None, "criteria": ["can wait", "today"]},
    },
}


@pytest.fixture
def ask(client: httpx.Client):
    def post(path: str = "/v1/systemone", headers: dict | None = None, **fields: object):
        return client.post(path, json={**REQUEST, **fields}, headers=headers)

    return post


def test_answer(ask):
    response = ask()
    assert response.status_code == 200
    body = response.json()
    assert list(body["answers"]) == ["refund", "team", "urgency"]
    assert 0 <= body["answers"]["refund"]["noul"] <= 1
    team = body["answers"]["team"]
    assert list(team["probabilities"]) == ["billing", "abstain", "other"]
    assert sum(team["probabilities"].values()) == pytest.approx(1)
    assert body["answers"]["urgency"]["legend"] == {"0": "can wait", "1": "today"}
    assert body["model"] == "hashing"
    assert type(body["usage"]["input_tokens"]) is int
    assert body["usage"]["output_tokens"] == 3
    assert response.headers["x-typesafe-request-id"] == response.headers["x-request-id"]


def test_the_same_probabilities_as_decide(client: httpx.Client, ask):
    questions = {name: REQUEST["questions"][name] for name in ("refund", "urgency")}
    translated = ask("/v1/systemone/translate", questions=questions).json()["request"]
    native = client.post("/v1/decide", json=translated).json()["decisions"]
    answers = ask(questions=questions).json()["answers"]
    assert answers["refund"]["noul"] == native["refund"]["probabilities"]["yes"]
    assert answers["urgency"]["score"] == native["urgency"]["expected_level"]
    assert answers["urgency"]["probabilities"] == native["urgency"]["probabilities"]


def test_own_fields_begin_with_x_unless_requested(ask):
    ours = {"id", "charge", "timing_ms", "fallback"}
    theirs = {"model", "answers", "usage"}
    assert ask().json().keys() == theirs | {f"x_{name}" for name in ours}
    assert ask(model="hashing").json().keys() == theirs | ours
    assert ask(headers={"Idempotency-Key": "k"}).json().keys() == theirs | ours


def test_a_refusal_says_it_in_their_words_too(ask):
    [found] = ask(questions={"one": {"type": "score", "criteria": 3}}).json()["detail"]
    assert found["loc"] == ["body", "questions", "one", "criteria"]
    assert found.keys() == {"loc", "msg", "type"}
    detail = ask(model="kettei-core").json()["detail"]
    assert detail.keys() == {"error_type", "message"}
    assert detail["error_type"] == "not_found"


def test_one_label_needs_no_engine(server: LiveServer, ask):
    response = ask(questions={"only": {"type": "score", "criteria": [None]}})
    assert response.json()["answers"]["only"] == {
        "type": "score",
        "score": 0.0,
        "confidence": 1.0,
        "legend": {"0": ""},
        "probabilities": {"0": 1.0},
    }
    assert server.scorer.n_requests == 0


def test_a_key_replays_the_answer(server: LiveServer, ask):
    headers = {"Idempotency-Key": "systemone-1"}
    first, again = ask(headers=headers), ask(headers=headers)
    assert again.content == first.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert server.scorer.n_requests == 1
    assert_canonical_error(ask(headers=headers, state="Other."), 409, "idempotency_conflict")


def test_feedback_on_an_answer(client: httpx.Client, ask):
    id_ = ask(model="hashing").json()["id"]
    outcomes = {"refund": "yes", "team": {"abstain": 0.5, "other": 0.5}, "urgency": "1"}
    response = client.post("/v1/feedback", json={"decision_id": id_, "outcomes": outcomes})
    assert response.json() == {"decision_id": id_, "recorded": ["refund", "team", "urgency"]}


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/systemone/estimate"])
def test_unknown_model(ask, path):
    error = assert_canonical_error(ask(path, model="kettei-core"), 404, "not_found")
    assert "kettei-core" in error["message"]


@pytest.mark.parametrize(
    "path", ["/v1/systemone", "/v1/systemone/estimate", "/v1/systemone/translate"]
)
class TestRefusals:
    def test_box(self, ask, path):
        response = ask(path, questions={"dog": {"type": "box", "instructions": "The dog"}})
        assert_canonical_error(
            response, 422, "invalid_request", path=["body", "questions", "dog", "type"]
        )
        assert response.headers["x-typesafe-request-id"]

    def test_assets(self, ask, path):
        response = ask(path, assets={"a": {"part": "asset-0", "type": "image"}})
        error = assert_canonical_error(response, 422, "images_not_supported")
        assert error["details"][0]["path"] == ["body", "assets"]

    def test_multipart(self, client: httpx.Client, path):
        files = {"request": (None, json.dumps(REQUEST), "application/json"), "asset-0": b"\x89PNG"}
        response = client.post(path, files=files)
        assert_canonical_error(response, 415, "unsupported_media_type")

    def test_unknown_field(self, ask, path):
        assert_canonical_error(
            ask(path, temperature=1), 422, "invalid_request", path=["body", "temperature"]
        )

    def test_missing_fields(self, client: httpx.Client, path):
        error = assert_canonical_error(client.post(path, json={}), 422, "invalid_request")
        assert [detail["path"][1] for detail in error["details"]] == ["model", "state", "questions"]


def test_estimate(ask, server: LiveServer):
    estimate = ask("/v1/systemone/estimate").json()
    assert estimate["input_tokens"] == ask().json()["usage"]["input_tokens"]
    assert estimate["models"][0]["id"] == "hashing"
    assert server.scorer.n_requests == 1


def test_translate_is_decides_body(client: httpx.Client, ask):
    assert_canonical_error(
        ask("/v1/systemone/translate"),
        422,
        "invalid_request",
        path=["body", "questions", "team", "criteria", "abstain"],
    )
    questions = {**REQUEST["questions"], "team": {"type": "choice", "criteria": {"a": "", "b": {}}}}
    translated = ask("/v1/systemone/translate", questions=questions, model="hashing").json()
    assert translated["request"].keys() == {"context", "decisions", "model"}
    assert all(isinstance(note, str) for note in translated["notes"])
    assert client.post("/v1/decide", json=translated["request"]).status_code == 200
