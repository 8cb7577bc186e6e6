"""Reading, mapping and answering TypeSafe's dialect, without a server."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from steelyard.decisions.kinds import Outcomes
from steelyard.decisions.rendering import render_decision
from steelyard.dialects.systemone.mapping import read_systemone, translate_systemone
from steelyard.errors import ImagesNotSupportedError, InvalidRequestError
from support.decisions.factories import make_service
from support.decisions.strategies import json_values

REQUEST: dict[str, Any] = {
    "model": "jev-latest",
    "state": "My card was charged twice.",
    "questions": {
        "refund": {"type": "noul", "instructions": "Is money asked back?"},
        "team": {
            "type": "choice",
            "instructions": "Who should own this?",
            "criteria": {"billing": "charges and refunds", "abstain": None, "other": None},
        },
        "urgency": {"type": "score", "instructions": None, "criteria": ["can wait", "today", None]},
    },
}


def request_with(name: str = "q", **question: Any) -> dict[str, Any]:
    return {**REQUEST, "questions": {name: question}}


def violations(payload: Any, read: Any = read_systemone) -> dict[tuple[Any, ...], str]:
    try:
        read(payload)
    except InvalidRequestError as error:
        for violation in error.violations:
            assert violation.message.endswith((".", "?"))
        return {violation.path: violation.type for violation in error.violations}
    return {}


def test_questions_become_decisions():
    request = read_systemone(REQUEST).decide_request(None)
    assert request.context == REQUEST["state"]
    assert [(d.id, d.kind, d.question) for d in request.decisions] == [
        ("refund", "binary", "Is money asked back?"),
        ("team", "single", "Who should own this?"),
        ("urgency", "ordinal", "Which level fits best?"),
    ]
    assert [d.outcomes for d in request.decisions] == [
        Outcomes(("yes", "no"), (None, None)),
        Outcomes(("billing", "abstain", "other"), ("charges and refunds", None, None)),
        Outcomes(("0", "1", "2"), ("can wait", "today", "")),
    ]


def test_the_model_reads_labels_as_the_caller_wrote_them():
    team = read_systemone(REQUEST).decide_request(None).decisions[1]
    assert render_decision(team).outcomes == ("billing: charges and refunds", "abstain", "other")


def test_bytes_and_mappings_read_alike():
    assert read_systemone(json.dumps(REQUEST).encode()) == read_systemone(copy.deepcopy(REQUEST))


@pytest.mark.parametrize("state", ["", {"text": "Hi"}, ["Hi", {"a": 1}]])
def test_any_state_but_null(state):
    assert read_systemone({**REQUEST, "state": state}).state == state
    assert violations({**REQUEST, "state": None}) == {("body", "state"): "wrong_type"}


def test_answers_in_the_callers_words():
    answers = read_systemone(REQUEST).answers(
        {"refund": [0.9, 0.1], "team": [0.2, 0.7, 0.1], "urgency": [0.7, 0.2, 0.1]}
    )
    encoded = json.loads(msgspec.json.encode(answers))
    assert encoded == {
        "refund": {"type": "noul", "noul": 0.9},
        "team": {
            "type": "choice",
            "choice": "abstain",
            "confidence": pytest.approx(0.55),
            "probabilities": {"billing": 0.2, "abstain": 0.7, "other": 0.1},
        },
        "urgency": {
            "type": "score",
            "score": pytest.approx(0.4),
            "confidence": pytest.approx(0.4),
            "legend": {"0": "can wait", "1": "today", "2": ""},
            "probabilities": {"0": 0.7, "1": 0.2, "2": 0.1},
        },
    }
    assert list(encoded) == list(REQUEST["questions"])


def test_one_label_or_level_is_settled_without_a_model():
    questions = {
        "only": {"type": "choice", "criteria": {"yes": None}},
        "level": {"type": "score", "criteria": [{"deep": [1]}]},
    }
    read = read_systemone({**REQUEST, "questions": questions})
    assert read.decide_request(None).decisions == ()
    assert msgspec.to_builtins(read.answers({})) == {
        "only": {"type": "choice", "choice": "yes", "confidence": 1.0, "probabilities": {"yes": 1}},
        "level": {
            "type": "score",
            "score": 0.0,
            "confidence": 1.0,
            "legend": {"0": {"deep": [1]}},
            "probabilities": {"0": 1.0},
        },
    }


def test_tie_goes_to_the_first_label():
    read = read_systemone(request_with(type="choice", criteria={"b": None, "a": None}))
    assert read.answers({"q": [0.5, 0.5]})["q"].choice == "b"


@pytest.mark.parametrize(
    ("question", "path", "type_"),
    [
        ({"instructions": "?"}, ("type",), "missing"),
        ({"type": "box"}, ("type",), "not_allowed"),
        ({"type": "box", "criteria": {"a": None}}, ("type",), "not_allowed"),
        ({"type": "noul"}, ("instructions",), "missing"),
        ({"type": "noul", "instructions": " "}, ("instructions",), "missing"),
        ({"type": "noul", "criteria": {"true": None}}, ("instructions",), "missing"),
        ({"type": "noul", "criteria": {"yes": "a"}}, ("criteria", "yes"), "not_allowed"),
        ({"type": "noul", "instructions": "?", "criteria": ["a"]}, ("criteria",), "wrong_type"),
        ({"type": "noul", "instructions": 3}, ("instructions",), "wrong_type"),
        ({"type": "choice"}, ("criteria",), "missing"),
        ({"type": "choice", "criteria": {}}, ("criteria",), "too_short"),
        ({"type": "choice", "criteria": ["a", "b"]}, ("criteria",), "wrong_type"),
        ({"type": "choice", "criteria": {" ": None, "b": None}}, ("criteria", " "), "blank"),
        ({"type": "choice", "criteria": {"a": 1, "b": None}}, ("criteria", "a"), "wrong_type"),
        (
            {"type": "choice", "criteria": {str(i): None for i in range(256)}},
            ("criteria",),
            "too_long",
        ),
        ({"type": "score"}, ("criteria",), "missing"),
        ({"type": "score", "criteria": []}, ("criteria",), "too_short"),
        ({"type": "score", "criteria": {"0": "a"}}, ("criteria",), "wrong_type"),
        ({"type": "score", "criteria": ["a", 2]}, ("criteria", 1), "wrong_type"),
        ({"type": "score", "criteria": ["a"] * 256}, ("criteria",), "too_long"),
        ({"type": "score", "criteria": ["a"], "legend": 1}, ("legend",), "unknown_field"),
    ],
)
def test_violations_are_in_the_callers_dialect(question, path, type_):
    assert violations(request_with(**question)) == {("body", "questions", "q", *path): type_}


def test_every_violation_is_reported():
    payload = {
        "model": " ",
        "questions": {"": {"type": "box"}, "b": {"type": "score"}, "c": 1, "d" * 129: {}},
        "policy": {},
    }
    assert violations(payload) == {
        ("body", "model"): "blank",
        ("body", "state"): "missing",
        ("body", "policy"): "unknown_field",
        ("body", "questions", "", "type"): "not_allowed",
        ("body", "questions", ""): "blank",
        ("body", "questions", "b", "criteria"): "missing",
        ("body", "questions", "c"): "wrong_type",
        ("body", "questions", "d" * 129): "too_long",
    }


@pytest.mark.parametrize("questions", [{}, None, [], {str(i): {} for i in range(65)}])
def test_number_of_questions(questions):
    assert ("body", "questions") in violations({**REQUEST, "questions": questions})


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'"x"', b"{", b'{"state": "\\ud800"}'])
def test_bodies_that_are_no_request(body):
    assert violations(body)


@pytest.mark.parametrize("read", [read_systemone, translate_systemone])
def test_assets_are_refused_by_name(read):
    with pytest.raises(ImagesNotSupportedError, match="assets") as caught:
        read({**REQUEST, "assets": {"a": {"part": "asset-0"}}})
    assert caught.value.details[0]["path"] == ["body", "assets"]
    assert read_systemone({**REQUEST, "assets": None}) == read_systemone(REQUEST)


def translatable(**fields: Any) -> dict[str, Any]:
    request = {**copy.deepcopy(REQUEST), **fields}
    del request["questions"]["team"]["criteria"]["abstain"]
    return request


def test_translation_is_the_request_that_asks_the_same():
    translated = translate_systemone(translatable())
    assert translated.request == {
        "context": "My card was charged twice.",
        "decisions": [
            {"id": "refund", "kind": "binary", "question": "Is money asked back?"},
            {
                "id": "team",
                "kind": "single",
                "question": "Who should own this?",
                "outcomes": {"billing": "charges and refunds", "other": None},
            },
            {
                "id": "urgency",
                "kind": "ordinal",
                "question": "Which level fits best?",
                "outcomes": ["0", "1", "2"],
                "rubric": ["can wait", "today", ""],
            },
        ],
    }
    native = make_service().prepare(translated.request)
    asked = read_systemone(translatable()).decide_request(None)
    assert native.request.decisions == asked.decisions
    assert native.rendered.context == asked.context


def test_translation_keeps_a_model_of_this_server():
    assert translate_systemone(translatable(model="mine")).request["model"] == "mine"


def test_translation_describes_noul():
    question = {"type": "noul", "criteria": {"false": "all else"}}
    (decision,) = translate_systemone(request_with(**question)).request["decisions"]
    assert decision["outcomes"] == {"no": "all else"}
    assert decision["question"] == "Which answer fits the context?"


def test_notes_give_the_threshold_of_each_question():
    notes = translate_systemone(translatable()).notes
    assert any('"jev-latest"' in note and "default base model" in note for note in notes)
    assert any(note.startswith('"refund"') and 'probabilities["yes"]' in note for note in notes)
    (team,) = [note for note in notes if note.startswith('"team"')]
    assert "(1 + c * 1) / 2 on p_top: 0.5 becomes 0.75." in team
    assert any(note.startswith('"urgency"') and "no exact equivalent" in note for note in notes)
    assert any(note.startswith('"urgency"') and "no instructions" in note for note in notes)


@pytest.mark.parametrize(
    ("question", "path", "type_"),
    [
        ({"type": "choice", "criteria": {"a": None}}, ("criteria",), "too_short"),
        ({"type": "score", "criteria": ["a"]}, ("criteria",), "too_short"),
        ({"type": "choice", "criteria": {"abstain": 1, "b": None}}, ("criteria", "abstain"), ""),
        (
            {"type": "choice", "criteria": {"abstain": None, "b": None}},
            ("criteria", "abstain"),
            "reserved",
        ),
    ],
)
def test_translation_refuses_as_decide_does(question, path, type_):
    found = violations(request_with(**question), translate_systemone)
    assert list(found) == [("body", "questions", "q", *path)]
    assert found["body", "questions", "q", *path] == (type_ or "wrong_type")


def test_translation_names_the_callers_field_in_its_message():
    with pytest.raises(InvalidRequestError) as caught:
        translate_systemone(request_with("my q", type="score", criteria=["a"]))
    assert caught.value.message.startswith('questions["my q"].criteria has 1 ')


def test_long_labels_that_differ_answer_and_do_not_translate():
    questions = {
        name: {"type": "choice", "criteria": {name * 501: None, "other": None}} for name in "ab"
    }
    payload = {**REQUEST, "questions": questions}
    assert len(read_systemone(payload).decide_request(None).decisions) == 2
    assert violations(payload, translate_systemone) == {
        ("body", "questions", "b", "criteria"): "too_long"
    }


@given(json_values)
def test_no_question_is_a_fault_of_the_server(question):
    for read in (read_systemone, translate_systemone):
        violations(request_with("q", **question) if isinstance(question, dict) else question, read)
        violations({**REQUEST, "questions": {"a": question, "b": {"type": "score"}}}, read)
        for type_ in ("noul", "choice", "score"):
            asked = {"type": type_, "criteria": question, "instructions": question}
            violations({**REQUEST, "questions": {"a": asked}, "state": question}, read)
