from __future__ import annotations

from typing import Any

import pytest

from steelyard.dialects.systemone.service import SystemOneService
from steelyard.errors import InvalidRequestError, NotFoundError
from steelyard.operations.write import Write, payload_sha256
from support.decisions.dialects import StubDecisions, StubModels
from support.servers.calling import LOCAL, answer_of

REQUEST: dict[str, Any] = {
    "model": "jev-latest",
    "state": "My card was charged twice.",
    "questions": {
        "refund": {"type": "noul", "instructions": "Is money asked back?"},
        "only": {"type": "choice", "criteria": {"it": None}},
        "urgency": {"type": "score", "criteria": ["can wait", "today"]},
    },
}


def make(*names: str) -> tuple[SystemOneService, StubDecisions]:
    decisions = StubDecisions(StubModels(names or ("hashing",)))
    return SystemOneService(decisions, decisions.models), decisions


def ask(service: SystemOneService, key: str | None = None, **fields: Any) -> dict[str, Any]:
    return call(service, "POST /v1/systemone", {**REQUEST, **fields}, key=key)


def call(service: SystemOneService, route: str, body: Any, **how: Any) -> Any:
    return answer_of(route, {SystemOneService: service}, body, **how)


def test_answer_has_every_question_in_order():
    service, _ = make()
    answer = ask(service)
    assert list(answer["answers"]) == ["refund", "only", "urgency"]
    assert answer["answers"]["only"]["confidence"] == 1
    assert answer["usage"]["output_tokens"] == 3
    assert answer["model"] == "hashing"
    assert answer["x_fallback"] is None
    assert answer["x_id"].startswith("dec_")
    assert answer["x_charge"]["currency"] == "USD"
    assert set(answer["x_timing_ms"]) == {"queue", "render", "score", "total"}


def test_only_open_questions_are_scored_and_counted():
    service, decisions = make()
    with_settled = ask(service)["usage"]["input_tokens"]
    (ran,) = decisions.ran
    assert [d.id for d in ran["request"].request.decisions] == ["refund", "urgency"]
    questions = {name: q for name, q in REQUEST["questions"].items() if name != "only"}
    assert ask(service, questions=questions)["usage"]["input_tokens"] == with_settled


def test_nothing_is_counted_when_every_question_has_one_answer():
    service, _ = make()
    answer = ask(service, questions={"only": REQUEST["questions"]["only"]})
    assert answer["answers"]["only"]["choice"] == "it"
    assert answer["usage"] == {"input_tokens": 0, "output_tokens": 1}


def test_what_runs_is_told_the_key_and_the_decoded_payload():
    service, decisions = make()
    ask(service, key="k1")
    (ran,) = decisions.ran
    assert ran["write"] == Write(LOCAL, "POST /v1/systemone", "k1", payload_sha256(REQUEST))


@pytest.mark.parametrize("model", ["jev-latest", "jev-preview", "jev"])
def test_names_of_the_other_service_mean_the_default(model):
    service, decisions = make()
    assert ask(service, model=model)["model"] == "hashing"
    assert decisions.ran[0]["request"].request.model is None


def test_a_model_here_may_be_named_like_theirs():
    service, decisions = make("hashing", "jevons")
    ask(service, model="jevons")
    assert decisions.ran[0]["request"].request.model == "jevons"


def test_unknown_model():
    service, _ = make()
    with pytest.raises(NotFoundError, match="'kettei-core'"):
        ask(service, model="kettei-core")


def test_invalid_requests_come_before_unknown_models():
    service, _ = make()
    with pytest.raises(InvalidRequestError):
        ask(service, model="kettei-core", questions={})


def test_estimate_and_translation_run_nothing():
    service, decisions = make()
    estimate = call(service, "POST /v1/systemone/estimate", REQUEST)
    assert estimate == ask(service)["usage"]["input_tokens"]
    questions = {"refund": REQUEST["questions"]["refund"]}
    body = {**REQUEST, "questions": questions}
    translated = call(service, "POST /v1/systemone/translate", body)
    assert translated["request"]["decisions"][0]["id"] == "refund"
    assert len(decisions.ran) == 1


def test_answers_have_their_warnings():
    assert "x_warnings" not in ask(make()[0])
    answer = ask(make()[0], state={"body": "<p>It came <b>late</b>.</p>"})
    assert [warning["code"] for warning in answer["x_warnings"]] == ["markup"]
