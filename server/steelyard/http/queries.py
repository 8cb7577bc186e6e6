"""Queries: text in the address, checked against a struct, with every violation reported."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from sanic import Request

from steelyard.wire.payloads import read_texts
from steelyard.wire.violations import Violations, show

Query = TypeVar("Query", bound=msgspec.Struct)


def read_query(request: Request, shape: type[Query]) -> Query:
    """Return the query of a request."""
    given = _given_in(request)
    fields, types, required = _fields_of(shape)
    violations = Violations()
    values: dict[str, Any] = {}
    for name, texts in given.items():
        path = ("query", name)
        if name not in types:
            violations.add(path, "is not a parameter here; remove it.", "unknown_field")
            continue
        is_list = any(get_origin(kind) is list for kind in _kinds(types[name]))
        if len(texts) > 1 and not is_list:
            violations.add(path, f"is given {len(texts)} times; give it once.", "duplicate")
            continue
        if is_list:
            texts = [part.strip() for text in texts for part in text.split(",")]  # noqa: PLW2901
        allowed = [text for kind in _kinds(types[name]) for text in _words(kind)]
        unknown = [text for text in texts if allowed and text not in allowed]
        if unknown:
            shown = ", ".join(show(text) for text in unknown)
            violations.add(path, f"has {shown}; use {', '.join(allowed)}.", "not_allowed")
            continue
        values[name] = read_texts(texts, types[name], violations, path)
        if values[name] is None:  # read from the word null, where no text is taken
            message = "cannot be null in an address; give a value, or leave it out."
            violations.add(path, message, "invalid_value")
    for name in required:
        if name not in given:
            violations.add(("query", name), "is missing; add it to the address.", "missing")
    violations.raise_if_any()
    return shape(**{fields[name]: value for name, value in values.items()})


def _given_in(request: Request) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    if request.query_string:
        for name, value in request.get_query_args(keep_blank_values=True):
            given.setdefault(name, []).append(value)
    return given


@lru_cache(None)
def _fields_of(
    shape: type[msgspec.Struct],
) -> tuple[dict[str, str], dict[str, Any], tuple[str, ...]]:
    """Return each parameter's attribute and type by its name in the address, and the required ones."""
    hints = get_type_hints(shape, include_extras=True)
    struct_fields = msgspec.structs.fields(shape)
    fields = {field.encode_name: field.name for field in struct_fields}
    types = {name: hints[attribute] for name, attribute in fields.items()}
    return fields, types, tuple(field.encode_name for field in struct_fields if field.required)


def _kinds(annotated: Any) -> Iterator[Any]:
    """Yield a type and every type in it."""
    yield annotated
    if get_origin(annotated) is not Literal:
        for part in get_args(annotated):
            yield from _kinds(part)


def _words(kind: Any) -> tuple[str, ...]:
    """Return the texts that a type of them allows; none where it is another type."""
    return get_args(kind) if get_origin(kind) is Literal else ()
