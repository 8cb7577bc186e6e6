from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import InvalidRequestError
from steelyard.wire import json_values as json_module
from steelyard.wire.json_values import MAX_DEPTH, check_json, decode_json
from steelyard.wire.violations import Violations
from support.decisions.strategies import few, json_values


def found_in(value: object) -> dict[tuple[Any, ...], str]:
    found = Violations()
    check_json(value, found)
    return {violation.path: violation.type for violation in found.listed}


def refusal(body: bytes) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        decode_json(body)
    (violation,) = caught.value.violations
    assert violation.path == ("body",)
    return violation.type


@few
@given(json_values)
def test_json_is_read_back(value: Any) -> None:
    assert decode_json(json.dumps(value).encode()) == value
    assert decode_json(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value
    assert found_in(value) == {}


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (b"", "missing"),
        (b" \n", "missing"),
        (b"nul", "invalid_json"),
        (b"{'a': 1}", "invalid_json"),
        (b"{} {}", "invalid_json"),
        (b'{"a": 1,}', "invalid_json"),
        (b'"a\nb"', "invalid_json"),
        (b"\xef\xbb\xbf{}", "invalid_json"),
        (b'"\xff"', "invalid_utf8"),
        (b'"\xed\xa0\x80"', "invalid_utf8"),
        (b"[" * 10_000, "too_deep"),
        (b'{"a":' * 10_000, "too_deep"),
        (b"[" * 10_000 + b"]" * 10_000, "too_deep"),
        (b'"' + b'\\"' * 200_000, "invalid_json"),
    ],
)
def test_bytes_that_cannot_be_read_are_refused(body: bytes, type_: str) -> None:
    assert refusal(body) == type_


def test_brackets_inside_text_are_no_nesting() -> None:
    text = '["' * 500 + '\\"' + "[{" * 500
    assert decode_json(json.dumps({"a": text}).encode()) == {"a": text}


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_is_bounded_with_its_place(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    step = 0 if opening == b"[" else "a"
    for depth in (MAX_DEPTH, MAX_DEPTH + 1, 150):
        value = decode_json(opening * depth + b"1" + closing * depth)
        expected = {("body", *[step] * MAX_DEPTH): "too_deep"} if depth > MAX_DEPTH else {}
        assert found_in(value) == expected


def test_nesting_of_python_values_cannot_exhaust_the_stack() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert set(found_in(value).values()) == {"too_deep"}
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    assert set(found_in(cyclic).values()) == {"too_deep"}
    while value:
        # Freeing it in one go would be the deep recursion that this test is about.
        value = value.pop()


def test_lists_that_share_lists_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_module, "MAX_VALUES", 1000)
    value: Any = [0] * 100
    assert found_in([value] * 9) == {}
    for _ in range(30):
        value = [value, value]
    assert found_in(value) == {("body",): "too_long"}


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 400, "9" * 5000]
)
def test_numbers_that_are_not_finite_are_refused_at_their_place(number: str) -> None:
    value = decode_json(f'{{"a": [1, {number}]}}'.encode())
    assert found_in(value) == {("body", "a", 1): "not_finite"}


@pytest.mark.parametrize("number", ["1e308", "-1.7976931348623157e308", "1" + "0" * 308, "1e-999"])
def test_the_largest_and_smallest_numbers_pass(number: str) -> None:
    assert found_in(decode_json(number.encode())) == {}


def test_lone_surrogates_are_refused_in_texts_and_keys() -> None:
    value = decode_json(rb'{"a": ["\ud800", "\ud83d\ude00"], "b\udc00": 1}')
    assert found_in(value) == {
        ("body", "a", 0): "lone_surrogate",
        ("body", "b\\udc00"): "lone_surrogate",
    }


def test_repeated_keys_are_refused_at_their_place() -> None:
    value = decode_json(b'{"a": [{"x": 1, "x": 1, "y": 2, "x": 3}], "b": {"x": 1}}')
    assert found_in(value) == {("body", "a", 0, "x"): "duplicate_key"}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": {1, 2}}, ("body", "a")),
        ({"a": b"bytes"}, ("body", "a")),
        ({1: "a"}, ("body", "1")),
        ({"a": [{None: 1}]}, ("body", "a", 0, "null")),
        ([1j], ("body", 0)),
        (object(), ("body",)),
    ],
)
def test_python_values_without_a_json_form_are_refused(value: Any, path: tuple[Any, ...]) -> None:
    assert found_in(value) == {path: "not_json"}


@few
@given(st.text(alphabet='[]{}",:\\ 1', max_size=60))
def test_text_like_json_is_read_or_refused_as_json_is(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        refusal(text.encode())
    else:
        assert decode_json(text.encode()) == expected
