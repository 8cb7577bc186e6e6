from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from steelyard.decisions.validation import read_request
from steelyard.errors import InvalidRequestError
from support.decisions.factories import make_decision_dict, make_request_dict, violations_of


def test_everything_wrong_is_found_at_once() -> None:
    request = make_request_dict(
        {"id": " ", "questoin": "x", "kind": "singel", "outcomes": ["a"]},
        {
            "id": "b",
            "question": " ",
            "outcomes": ["a", "a", "abstain", " "],
            "costs": {"r": "x"},
            "targets": 1,
            "abstain": {},
        },
        {"id": "b", "question": [], "kind": "ordinal", "outcomes": ["1", "2"], "rubric": ["x"]},
        context=5,
        model="  ",
        temperature=True,
    )
    first, second, third = (("body", "decisions", index) for index in range(3))
    expected = {
        ("body", "context"): "wrong_type",
        ("body", "model"): "blank",
        ("body", "temperature"): "wrong_type",
        (*first, "id"): "blank",
        (*first, "question"): "missing",
        (*first, "questoin"): "unknown_field",
        (*first, "kind"): "not_allowed",
        (*second, "question"): "blank",
        (*second, "outcomes", 1): "duplicate",
        (*second, "outcomes", 2): "reserved",
        (*second, "outcomes", 3): "blank",
        (*second, "costs", "r"): "wrong_type",
        (*second, "targets"): "refused",
        (*second, "abstain"): "missing",
        (*third, "id"): "duplicate",
        (*third, "rubric"): "length_mismatch",
    }
    assert violations_of(request) == expected
    assert violations_of(json.dumps(request).encode()) == expected


def test_a_decision_that_is_no_object_does_not_hide_the_next() -> None:
    request = make_request_dict()
    request["decisions"] = [7, make_decision_dict(question="")]
    assert violations_of(request) == {
        ("body", "decisions", 0): "wrong_type",
        ("body", "decisions", 1, "question"): "blank",
    }


@pytest.mark.parametrize("count", [1, 64])
def test_up_to_64_decisions_pass(count: int) -> None:
    many = [make_decision_dict(id=str(index)) for index in range(count)]
    assert violations_of(make_request_dict(*many)) == {}


def test_more_than_64_decisions_are_refused() -> None:
    many = [make_decision_dict(id=str(index)) for index in range(65)]
    assert violations_of(make_request_dict(*many)) == {("body", "decisions"): "too_long"}


@pytest.mark.parametrize(
    ("id_", "type_"),
    [
        ("", "too_short"),
        ("i" * 129, "too_long"),
        ("\u2003", "blank"),
        ("a\0", "nul"),
        (3, "wrong_type"),
    ],
)
def test_ids_are_held_to_their_bounds(id_: Any, type_: str) -> None:
    found = violations_of(make_request_dict(make_decision_dict(id=id_)))
    assert found == {("body", "decisions", 0, "id"): type_}


def test_null_is_the_same_as_left_out() -> None:
    optional = ["model", "fallback", "temperature", "images", "independent", "store", "metadata"]
    nulls = dict.fromkeys(["kind", "rubric", "policy", "weights", "costs", "abstain"])
    request = make_request_dict(make_decision_dict(**nulls), **dict.fromkeys(optional))
    assert read_request(request) == read_request(make_request_dict(make_decision_dict()))


def test_fields_are_read() -> None:
    request = read_request(
        make_request_dict(
            context={"a": 1},
            model="m",
            fallback=["x", "y"],
            temperature=2,
            store=False,
            independent=True,
            metadata={"k": 1.5},
        )
    )
    assert (request.context, request.model, request.temperature) == ({"a": 1}, "m", 2)
    assert (request.fallback, request.store, request.metadata) == (("x", "y"), False, {"k": 1.5})
    assert [decision.index for decision in request.decisions] == [0, 1, 2]
    assert not request.has_images


@pytest.mark.parametrize(
    ("field", "kind", "text", "type_"),
    [
        ("opposite", "single", "Is it calm?", "not_allowed"),
        ("statement", "single", "It is calm.", "not_allowed"),
        ("statement", "binary", " ", "blank"),
        ("opposite", "binary", "", "too_short"),
        ("guideline", "single", "\n", "blank"),
        ("guideline", "single", "x" * 10_001, "too_long"),
        ("guideline", "binary", "Ring\x07", "wrong_form"),
        ("guideline", "binary", "\0", "wrong_form"),
    ],
)
def test_texts_beside_a_question_are_checked(field: str, kind: str, text: str, type_: str) -> None:
    decision = {"id": "a", "kind": kind, "question": "Is it urgent?", field: text}
    outcomes = {"outcomes": ["a", "b"]} if kind == "single" else {}
    with pytest.raises(InvalidRequestError) as caught:
        read_request({"context": "", "decisions": [{**decision, **outcomes}]})
    [violation] = caught.value.violations
    assert (violation.path[-1], violation.type) == (field, type_)


def test_the_context_may_be_empty() -> None:
    assert violations_of(make_request_dict(context="")) == {}


@pytest.mark.parametrize("question", [{}, [], {"ask": "this"}, ["this"]])
def test_questions_may_be_objects_and_arrays(question: Any) -> None:
    assert violations_of(make_request_dict(make_decision_dict(question=question))) == {}


def test_tuples_and_other_mappings_count_as_arrays_and_objects() -> None:
    class Fields(dict[str, Any]):
        pass

    decision = Fields(make_decision_dict(outcomes=("a", "b")))
    assert read_request(make_request_dict(decision)).decisions[0].outcomes.names == ("a", "b")


LONG = "x" * 501


@pytest.mark.parametrize(
    ("one", "other", "is_refused"),
    [
        ([LONG, "b"], [LONG, "b"], False),
        ([LONG, "b"], ["b", LONG], True),
        ([LONG, "b"], [LONG, "c"], True),
        ([LONG, "b"], {LONG: "described", "b": None}, False),
        ([LONG, "b"], ["c", "d"], False),
        ([LONG[:500], "b"], [LONG[:500], "c"], False),
    ],
)
def test_decisions_with_very_long_names_share_their_list(
    one: Any, other: Any, is_refused: bool
) -> None:
    found = violations_of(
        make_request_dict(
            make_decision_dict(id="one", outcomes=one),
            make_decision_dict(id="other", outcomes=other),
        )
    )
    assert found == ({("body", "decisions", 1, "outcomes"): "too_long"} if is_refused else {})


def test_images_are_held_to_their_shape() -> None:
    image = {"id": 1, "media_type": "image/gif", "data": base64.b64encode(b"abc").decode(), "x": 1}
    assert violations_of(make_request_dict(images=[image])) == {
        ("body", "images", 0, "media_type"): "not_allowed",
        ("body", "images", 0, "x"): "unknown_field",
    }


def test_two_images_have_two_ids() -> None:
    image = {"id": 1, "media_type": "image/png", "data": base64.b64encode(b"abc").decode()}
    sent = {"context": "See <image:1> and <image:2>.", "images": [image, image]}
    assert violations_of(make_request_dict(**sent)) == {("body", "images", 1, "id"): "duplicate"}
    sent["images"] = [image, {**image, "id": 2}]
    assert read_request(make_request_dict(**sent)).has_images


@pytest.mark.parametrize("payload", [None, 3, "text", [], b"[]", b"3"])
def test_a_body_that_is_no_object_is_refused(payload: Any) -> None:
    with pytest.raises(InvalidRequestError, match="give an object"):
        read_request(payload)


def test_repeated_keys_are_refused_beside_other_violations() -> None:
    body = b'{"context": "a", "context": "b", "decisions": []}'
    assert violations_of(body) == {
        ("body", "context"): "duplicate_key",
        ("body", "decisions"): "too_short",
    }
