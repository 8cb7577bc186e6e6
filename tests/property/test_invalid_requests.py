from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import inspect

from steelyard.app.application import ROUTES
from steelyard.datasets.from_feedback_wire import RowsFromFeedback
from steelyard.datasets.wire import CreateDataset, RenameDataset
from steelyard.errors import (
    ImagesNotSupportedError,
    InvalidRequestError,
    NotFoundError,
    SteelyardError,
)
from steelyard.http.pipeline import open_call
from steelyard.labeling.wire import CreateLabelingJob
from steelyard.named.wire import ChangeNamedDecision, CreateNamedDecision
from steelyard.review.requests import MoveAssigned
from steelyard.review.wire import CreateDraft, SealDraft, UndoEdit
from steelyard.webhooks.wire import CreateWebhook
from steelyard.wire.payloads import read_payload
from support.decisions.factories import make_request_dict, make_service, violations_of
from support.decisions.strategies import few, foreign_values, json_values, mutated, names, requests


def refuse_or_prepare(payload: Any) -> SteelyardError | None:
    """Prepare a payload; its errors must be ours, whole, and printable as JSON."""
    error: SteelyardError | None = None
    try:
        make_service().prepare(payload)
    except SteelyardError as caught:
        error = caught
    if error is None:
        return None
    body = msgspec.json.decode(msgspec.json.encode(error.body("req_1")))["error"]
    assert body["message"]
    if isinstance(error, InvalidRequestError):
        assert body["details"]
        for detail in body["details"]:
            assert detail["path"][0] == "body"
            assert detail["message"]
            assert detail["type"]
    else:
        assert isinstance(error, NotFoundError | ImagesNotSupportedError)
    return error


@few
@given(requests())
def test_every_form_of_a_valid_request_is_accepted(request_: dict[str, Any]) -> None:
    assert violations_of(request_) == {}
    assert violations_of(json.dumps(request_).encode()) == {}


@few
@given(json_values)
@example([])
@example("")
@example({})
@example({"decisions": {}, "context": None})
def test_arbitrary_json_is_refused_and_never_fails_otherwise(value: Any) -> None:
    error = refuse_or_prepare(value)
    assert isinstance(error, InvalidRequestError)


@few
@given(mutated(json_values))
def test_a_mutated_request_is_refused_or_answered_alike_in_both_forms(request_: Any) -> None:
    from_values = refuse_or_prepare(request_)
    from_bytes = refuse_or_prepare(json.dumps(request_).encode())
    assert type(from_values) is type(from_bytes)
    if from_values is not None and from_bytes is not None:
        assert from_values.body() == from_bytes.body()


@few
@given(mutated(foreign_values | json_values))
@example({"context": "", "decisions": "\ud800"})
@example({"context": "\ud800", "decisions": [{"id": "\udfff", "question": "\ud800"}]})
@example({"context": "", "decisions": [{"\ud800": 1}]})
@example({"\ud800": 1})
def test_values_that_json_has_no_form_for_are_refused(request_: Any) -> None:
    error = refuse_or_prepare(request_)
    assert has_json_form(request_) or isinstance(error, InvalidRequestError)


def has_json_form(value: Any) -> bool:
    """Whether a value survives a round trip through JSON."""
    try:
        written = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return bool(json.loads(written) == value)


@few
@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()[:-1]))
def test_bytes_that_are_no_request_are_refused(body: bytes) -> None:
    error = refuse_or_prepare(body)
    assert isinstance(error, InvalidRequestError)


@few
@given(requests(), names.filter(lambda name: name != "hashing"))
def test_an_unknown_model_is_not_found(request_: dict[str, Any], name: str) -> None:
    with pytest.raises(NotFoundError, match="hashing"):
        make_service().prepare({**request_, "model": name})


FIRST = ("body", "decisions", 0)
INVALID: list[tuple[dict[str, Any], tuple[Any, ...], str]] = [
    ({"context": None}, ("body", "context"), "wrong_type"),
    ({"context": ...}, ("body", "context"), "missing"),
    ({"decisions": []}, ("body", "decisions"), "too_short"),
    ({"decisions": {}}, ("body", "decisions"), "wrong_type"),
    ({"model": ""}, ("body", "model"), "too_short"),
    ({"model": "m" * 129}, ("body", "model"), "too_long"),
    ({"model": " \t"}, ("body", "model"), "blank"),
    ({"model": 3}, ("body", "model"), "wrong_type"),
    ({"fallback": "always"}, ("body", "fallback"), "not_allowed"),
    ({"fallback": []}, ("body", "fallback"), "too_short"),
    ({"fallback": ["a", 1]}, ("body", "fallback", 1), "wrong_type"),
    ({"fallback": ["  "]}, ("body", "fallback", 0), "blank"),
    ({"temperature": 0.1}, ("body", "temperature"), "out_of_range"),
    ({"temperature": 5.01}, ("body", "temperature"), "out_of_range"),
    ({"temperature": True}, ("body", "temperature"), "wrong_type"),
    ({"temperature": float("nan")}, ("body", "temperature"), "not_finite"),
    ({"temperature": 10**400}, ("body", "temperature"), "not_finite"),
    ({"independent": 1}, ("body", "independent"), "wrong_type"),
    ({"store": "yes"}, ("body", "store"), "not_allowed"),
    ({"metadata": {"k" * 65: 1}}, ("body", "metadata", "k" * 65), "too_long"),
    ({"metadata": {"k": "v" * 513}}, ("body", "metadata", "k"), "too_long"),
    ({"metadata": {"k": []}}, ("body", "metadata", "k"), "wrong_type"),
    ({"metadata": {str(n): n for n in range(17)}}, ("body", "metadata"), "too_long"),
    ({"images": []}, ("body", "images"), "too_short"),
    ({"images": [{"id": 0}]}, ("body", "images", 0, "id"), "out_of_range"),
    ({"images": [{"id": 1.5}]}, ("body", "images", 0, "id"), "wrong_type"),
    ({"targets": {}}, ("body", "targets"), "refused"),
    ({"rewards": {}}, ("body", "rewards"), "refused"),
    ({"contxt": ""}, ("body", "contxt"), "unknown_field"),
]


@pytest.mark.parametrize(("fields", "path", "type_"), INVALID)
def test_each_invalid_field_is_named(
    fields: dict[str, Any], path: tuple[Any, ...], type_: str
) -> None:
    assert violations_of(make_request_dict(**fields)).get(path) == type_


def with_nul(of: inspect.Type, depth: int = 0) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Values of a type that have NUL in a single text, and the path of that text."""
    while isinstance(of, inspect.Metadata):
        of = of.type
    inner: list[tuple[Any, inspect.Type]] = []
    if isinstance(of, inspect.StrType):
        yield (), "a\0b"
    elif isinstance(of, inspect.UnionType):
        for kind in of.types:
            yield from with_nul(kind, depth)
    elif isinstance(of, inspect.StructType) and depth < 6:  # filters hold filters
        inner = [(field.encode_name, field.type) for field in of.fields]
    elif isinstance(of, inspect.ListType):
        inner = [(0, of.item_type)]
    elif isinstance(of, inspect.DictType):
        yield ("a\0b",), {"a\0b": None}
        inner = [("key", of.value_type)]
    for step, type_ in inner:
        for path, value in with_nul(type_, depth + 1):
            yield (step, *path), [value] if step == 0 else {step: value}


STORING = [
    route
    for route in ROUTES
    if route.request and not (route.is_inference or route.is_bounded or route.handler)
]


@pytest.mark.parametrize("route", STORING, ids=lambda route: f"{route.method} {route.path}")
def test_no_text_that_is_stored_has_nul(route: Any) -> None:
    """Of what is asked of a model, and of rows, any may."""
    for path, value in with_nul(inspect.type_info(route.request)):
        with pytest.raises(InvalidRequestError) as refused:
            open_call(route, SimpleNamespace(), json.dumps(value).encode())
        [detail] = refused.value.body()["error"]["details"]
        assert (detail["path"], detail["type"]) == (["body", *path], "nul")


@pytest.mark.parametrize(
    ("shape", "field"),
    [
        (CreateDataset, "name"),
        (RenameDataset, "name"),
        (RowsFromFeedback, "name"),
        (CreateLabelingJob, "name"),
        (CreateDraft, "name"),
        (SealDraft, "name"),
        (UndoEdit, "reviewer"),
        (MoveAssigned, "from"),
        (CreateNamedDecision, "owner"),
        (ChangeNamedDecision, "owner"),
        (CreateWebhook, "description"),
    ],
)
def test_names_for_people_are_on_one_line(shape: type[Any], field: str) -> None:
    for text in ("two\nlines", "ends\n", "\r", "\ttab", "\x7f"):
        with pytest.raises(InvalidRequestError) as refused:
            read_payload({field: text}, shape)
        found = {tuple(detail["path"]): detail["type"] for detail in refused.value.details}
        assert found[("body", field)] == "wrong_form"
