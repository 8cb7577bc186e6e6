from __future__ import annotations

from typing import Any

import pytest

from steelyard.dialects.openai.service import OpenAIDecisionService
from steelyard.errors import NotFoundError
from steelyard.operations.write import Write, payload_sha256
from support.decisions.dialects import StubDecisions
from support.servers.calling import LOCAL, answer_of

PREDICATE = {"type": "predicate", "name": "refund", "instructions": "Money is asked back."}
REQUEST: dict[str, Any] = {
    "model": "hashing",
    "input": "My card was charged twice.",
    "questions": [
        PREDICATE,
        {
            "type": "choice",
            "instructions": "Which team?",
            "choices": [{"value": "billing"}, {"value": "other"}],
        },
    ],
}


def ask(decisions: StubDecisions, key: str | None = None, **fields: Any) -> dict[str, Any]:
    services = {OpenAIDecisionService: OpenAIDecisionService(decisions)}
    return answer_of("POST /v1/decisions", services, {**REQUEST, **fields}, key=key)


def test_answers_and_usage():
    answer = ask(StubDecisions())
    assert [a["type"] for a in answer["answers"]] == ["predicate", "choice"]
    assert answer["model"] == "hashing"
    usage = answer["usage"]
    assert usage == {
        "input_tokens": usage["input_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["input_tokens"] + 2,
    }
    assert usage["input_tokens"] > 0


def test_128_questions_are_one_operation():
    decisions = StubDecisions()
    questions = [{**PREDICATE, "instructions": f"It is {index}."} for index in range(128)]
    answer = ask(decisions, questions=questions)
    assert len(answer["answers"]) == 128
    assert len(decisions.ran) == 1
    shares = {a["probability"] for a in answer["answers"]}
    assert len(shares) == 128  # each its own, in its own place
    assert ask(decisions, questions=questions[77:78])["answers"][0] == answer["answers"][77]


def test_what_runs_is_told_the_key_and_the_decoded_payload():
    decisions = StubDecisions()
    ask(decisions, key="k1")
    (ran,) = decisions.ran
    assert ran["write"] == Write(LOCAL, "POST /v1/decisions", "k1", payload_sha256(REQUEST))


def test_unknown_model():
    with pytest.raises(NotFoundError, match="gpt-6-luna"):
        ask(StubDecisions(), model="gpt-6-luna")


def test_answers_have_their_warnings():
    assert "warnings" not in ask(StubDecisions())
    [warning] = ask(StubDecisions(), input="<p>My <b>card</b> was charged twice.</p>")["warnings"]
    assert warning["code"] == "markup"
