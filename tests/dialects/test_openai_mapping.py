"""Reading, mapping and answering OpenAI's dialect of decisions, without a server."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from steelyard.decisions.kinds import Outcomes
from steelyard.decisions.rendering import render_decision
from steelyard.dialects.openai.mapping import error_body, read_decisions
from steelyard.errors import (
    EngineUnavailableError,
    ImagesNotSupportedError,
    InsufficientCreditError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
)
from support.decisions.strategies import json_values

REQUEST: dict[str, Any] = {
    "model": "hashing",
    "input": "My card was charged twice.",
    "questions": [
        {"type": "predicate", "name": "refund", "instructions": "Money is asked back."},
        {
            "type": "choice",
            "instructions": "Who should own this?",
            "choices": [
                {"value": "abstain", "description": "nobody"},
                {"value": True},
                {"value": "true"},
            ],
        },
        {
            "type": "score",
            "name": None,
            "instructions": "How urgent is it?",
            "levels": [{"label": "low", "description": "can wait"}, {"label": "high"}],
        },
    ],
}
PREDICATE = {"type": "predicate", "instructions": "It is so."}


def request_with(*questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**REQUEST, "questions": list(questions or REQUEST["questions"]), **fields}


def violations(payload: Any) -> dict[tuple[Any, ...], str]:
    try:
        read_decisions(payload)
    except InvalidRequestError as error:
        return {violation.path: violation.type for violation in error.violations}
    return {}


def test_questions_become_decisions():
    request = read_decisions(REQUEST).decide_request()
    assert request.context == REQUEST["input"]
    assert request.model == "hashing"
    assert [(d.id, d.kind, d.question) for d in request.decisions] == [
        ("0", "binary", "Money is asked back."),
        ("1", "single", "Who should own this?"),
        ("2", "ordinal", "How urgent is it?"),
    ]
    assert [d.outcomes for d in request.decisions] == [
        Outcomes(("yes", "no"), (None, None)),
        Outcomes(("abstain", "boolean true", "true"), ("nobody", None, None)),
        Outcomes(("low", "high"), ("can wait", None)),
    ]
    assert render_decision(request.decisions[2]).outcomes == ("low: can wait", "high")


def test_booleans_read_as_their_json():
    choices = [{"value": True, "description": "it is"}, {"value": False}]
    question = {"type": "choice", "instructions": "Is it?", "choices": choices}
    (decision,) = read_decisions(request_with(question)).decide_request().decisions
    assert decision.outcomes.names == ("true", "false")


def test_answers_in_the_callers_words():
    answers = read_decisions(REQUEST).answers(
        {"0": [0.9, 0.1], "1": [0.2, 0.7, 0.1], "2": [0.25, 0.75]}
    )
    assert json.loads(msgspec.json.encode(answers)) == [
        {"type": "predicate", "name": "refund", "probability": 0.9},
        {
            "type": "choice",
            "name": None,
            "choice": True,
            "probabilities": [
                {"value": "abstain", "probability": 0.2},
                {"value": True, "probability": 0.7},
                {"value": "true", "probability": 0.1},
            ],
            "confidence": pytest.approx(0.55),
        },
        {
            "type": "score",
            "name": None,
            "score": 0.75,
            "probabilities": [
                {"value": 0, "label": "low", "probability": 0.25},
                {"value": 1, "label": "high", "probability": 0.75},
            ],
            "confidence": pytest.approx(0.5),
        },
    ]


@pytest.mark.parametrize(
    ("value", "context"),
    [
        ("", ""),
        ([{"role": "user", "content": "Hi"}], "Hi"),
        (
            [
                {"type": "message", "role": "user", "content": "One."},
                {"role": "user", "content": [{"type": "input_text", "text": "Two."}]},
            ],
            "One.\n\nTwo.",
        ),
        (
            [
                {"role": "system", "content": "Be brief."},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
            ],
            "system: Be brief.\n\nassistant: Hello.",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Order:"},
                        {"type": "input_json", "data": {"id": 118}},
                    ],
                }
            ],
            'Order:\n{"id": 118}',
        ),
    ],
)
def test_input_becomes_the_context(value, context):
    assert read_decisions({**REQUEST, "input": value}).context == context


def test_instructions_may_be_parts():
    parts = [{"type": "input_text", "text": "Is it"}, {"type": "input_text", "text": "so?"}]
    read = read_decisions(request_with({"type": "predicate", "instructions": parts}))
    assert read.questions[0].text == "Is it\nso?"


def test_names_may_repeat_and_be_null():
    questions = [{**PREDICATE, "name": name} for name in ("a", "a", None)]
    assert [q.name for q in read_decisions(request_with(*questions)).questions] == ["a", "a", None]


def test_ignored_fields():
    extra = {"safety_identifier": "u", "prompt_cache_key": "k", "prompt_cache_options": {"a": 1}}
    assert read_decisions({**REQUEST, **extra}) == read_decisions(REQUEST)


def test_128_questions_and_no_more():
    assert len(read_decisions(request_with(*[PREDICATE] * 128)).questions) == 128
    assert violations(request_with(*[PREDICATE] * 129)) == {("body", "questions"): "too_long"}


def choice(*values: Any) -> dict[str, Any]:
    return {"type": "choice", "instructions": "?", "choices": [{"value": v} for v in values]}


def score(*labels: Any) -> dict[str, Any]:
    return {"type": "score", "instructions": "?", "levels": [{"label": v} for v in labels]}


@pytest.mark.parametrize(
    ("question", "path", "type_"),
    [
        ({"instructions": "?"}, ("type",), "missing"),
        ({"type": "noul", "instructions": "?"}, ("type",), "not_allowed"),
        ({"type": "predicate"}, ("instructions",), "missing"),
        ({"type": "predicate", "instructions": " "}, ("instructions",), "blank"),
        ({"type": "predicate", "instructions": []}, ("instructions",), "too_short"),
        ({**PREDICATE, "weight": 1}, ("weight",), "unknown_field"),
        ({**PREDICATE, "name": ""}, ("name",), "too_short"),
        ({**PREDICATE, "name": "n" * 129}, ("name",), "too_long"),
        ({**PREDICATE, "choices": [{"value": "a"}, {"value": "b"}]}, ("choices",), "refused"),
        ({"type": "choice", "instructions": "?"}, ("choices",), "missing"),
        (choice("a"), ("choices",), "too_short"),
        (choice(*map(str, range(256))), ("choices",), "too_long"),
        (choice("a", "b", "a"), ("choices", 2, "value"), "duplicate"),
        (choice(True, True), ("choices", 1, "value"), "duplicate"),
        (choice("a", " "), ("choices", 1, "value"), "blank"),
        (choice("a", 1), ("choices", 1, "value"), "wrong_type"),
        ({"type": "score", "instructions": "?"}, ("levels",), "missing"),
        (score("a"), ("levels",), "too_short"),
        (score(*map(str, range(11))), ("levels",), "too_long"),
        (score("a", "a"), ("levels", 1, "label"), "duplicate"),
        (score("a", True), ("levels", 1, "label"), "wrong_type"),
        (
            {"type": "predicate", "instructions": [{"type": "input_text"}]},
            ("instructions", 0, "text"),
            "missing",
        ),
    ],
)
def test_violations_are_in_the_callers_dialect(question, path, type_):
    assert violations(request_with(question)) == {("body", "questions", 0, *path): type_}


@pytest.mark.parametrize(
    ("value", "path", "type_"),
    [
        (None, (), "wrong_type"),
        ([], (), "too_short"),
        ([{"content": "a"}], (0, "role"), "missing"),
        ([{"role": "tool", "content": "a"}], (0, "role"), "not_allowed"),
        ([{"role": "user", "content": "a", "type": "function_call"}], (0, "type"), "not_allowed"),
        ([{"role": "user"}], (0, "content"), "missing"),
        (
            [{"role": "user", "content": [{"type": "input_json"}]}],
            (0, "content", 0, "data"),
            "missing",
        ),
    ],
)
def test_violations_of_the_input(value, path, type_):
    assert violations({**REQUEST, "input": value}) == {("body", "input", *path): type_}


def test_images_are_refused_where_they_are():
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    value = [{"role": "user", "content": [{"type": "input_text", "text": "See"}, image]}]
    with pytest.raises(ImagesNotSupportedError) as caught:
        read_decisions({**REQUEST, "input": value})
    assert caught.value.details[0]["path"] == ["body", "input", 0, "content", 1]
    assert error_body(caught.value, None).error.param == "input[0].content[1]"
    with pytest.raises(ImagesNotSupportedError):
        read_decisions(request_with({"type": "predicate", "instructions": [image]}))


def test_error_body_has_both_dialects():
    with pytest.raises(InvalidRequestError) as caught:
        read_decisions(request_with(choice("a")))
    body = msgspec.to_builtins(error_body(caught.value, "req_1"))["error"]
    assert body["type"] == "invalid_request_error"
    assert body["param"] == "questions[0].choices"
    native = caught.value.body("req_1")["error"]
    assert {name: body[name] for name in native} == native
    assert body.keys() == native.keys() | {"type", "param"}


@pytest.mark.parametrize(
    ("error", "type_"),
    [
        (NotFoundError("No."), "invalid_request_error"),
        (RateLimitedError("Wait."), "rate_limit_error"),
        (InsufficientCreditError("Add credit."), "insufficient_quota"),
        (EngineUnavailableError("Busy."), "server_error"),
    ],
)
def test_error_types(error, type_):
    body = error_body(error, "req_1").error
    assert (body.type, body.param) == (type_, None)


@given(json_values)
def test_no_question_is_a_fault_of_the_server(value):
    violations(value if isinstance(value, dict) else {**REQUEST, "questions": value})
    violations({**REQUEST, "input": value})
    violations({**REQUEST, "input": [{"role": "user", "content": value}]})
    for type_ in ("predicate", "choice", "score"):
        asked = {"type": type_, "instructions": value, "choices": value, "levels": value}
        violations(request_with(asked))
        violations(request_with({**asked, "choices": [value, value], "levels": [value]}))
