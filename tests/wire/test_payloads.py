from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from msgspec import Meta

from steelyard.decisions.wire import DecideRequest, PlaygroundRequest
from steelyard.wire.payloads import check_shape
from steelyard.wire.violations import BODY, Violations
from support.decisions.factories import make_request_dict
from support.decisions.strategies import few, json_values, mutated


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    level: Annotated[int, Meta(ge=1, lt=5)]
    word: Literal["on", "off"] = "on"


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=2, max_length=4, pattern="^[a-z]+$")]
    inner: Inner | None = None
    flags: dict[str, bool] = {}
    many: Annotated[list[Inner], Meta(min_length=1, max_length=2)] | None = None
    store: bool | Literal["features"] | None = None


def messages(value: object, struct: type[msgspec.Struct] = Outer) -> list[str]:
    found = Violations()
    check_shape(value, struct, found, BODY)
    return [violation.message for violation in found.listed]


@few
@given(mutated(json_values))
def test_every_refusal_of_msgspec_is_described(value: Any) -> None:
    try:
        msgspec.convert(value, DecideRequest)
    except msgspec.ValidationError:
        assert messages(value, DecideRequest)
    else:
        assert messages(value, DecideRequest) == []


def test_everything_is_found_in_one_go() -> None:
    value = {
        "name": "x",
        "inner": {"level": 5, "word": "offf", "lvel": 1},
        "flags": {"a": 1, "b": True},
        "many": [{}, {"level": 1.5}, 3],
        "extra": 1,
    }
    assert messages(value) == [
        "name has 1 character; give 2 to 4.",
        "inner.level is 5; give less than 5.",
        'inner.word is "offf"; use "off" or "on".',
        "inner.lvel is not a field here; did you mean 'level'? Rename or remove it.",
        "flags.a is a number; give true or false.",
        "many has 3 entries; give 1 to 2.",
        "many[0].level is missing; add it.",
        "many[1].level is a number; give a whole number.",
        "extra is not a field here; remove it.",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "The request body is an array; give an object."),
        (None, "The request body is null; give an object."),
        (True, "The request body is true; give an object."),
        ({"name": None}, "name is null; give a text."),
        ({"name": "ok", "inner": []}, "inner is an array; give an object or null."),
        ({"name": "ok", "many": []}, "many is empty; give 1 to 2."),
        ({"name": "ok", "store": "yes"}, 'store is "yes"; use true or false or "features".'),
        ({"name": "o k"}, "name does not match ^[a-z]+$; correct it."),
    ],
)
def test_messages_have_the_value_and_a_valid_one(value: object, message: str) -> None:
    assert messages(value) == [message]


def test_the_playground_takes_eight_decisions() -> None:
    many = [{"id": str(index), "question": "?", "outcomes": ["a", "b"]} for index in range(9)]
    assert messages(make_request_dict(*many), DecideRequest) == []
    assert messages(make_request_dict(*many), PlaygroundRequest) == [
        "decisions has 9 entries; give 1 to 8."
    ]


def test_every_refused_field_names_where_it_belongs() -> None:
    (message,) = messages({**make_request_dict(), "targets": {}}, DecideRequest)
    assert "rows of a dataset" in message
