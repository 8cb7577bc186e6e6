"""Queries: text in the address, checked against a struct with every violation told."""

from __future__ import annotations

from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from sanic import Request

from steelyard.errors import InvalidRequestError, Violation

Query = TypeVar("Query", bound=msgspec.Struct)


def read_query(request: Request, shape: type[Query]) -> Query:
    """Give the query of a request.

    Parameters
    ----------
    request : sanic.Request
        A name given several times is a list where the field is one.
    shape : type of msgspec.Struct
        Its fields are texts, whole numbers, booleans, or lists of these.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When a field cannot be read, is given twice or is not known; ``details`` has every one.
    """
    given: dict[str, list[str]] = {}
    for name, value in request.get_query_args(keep_blank_values=True):
        given.setdefault(name, []).append(value)
    hints = get_type_hints(shape, include_extras=True)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(shape)}
    types = {name: hints[attribute] for name, attribute in fields.items()}
    violations: list[Violation] = []
    values: dict[str, Any] = {}
    for name, texts in given.items():
        if name not in types:
            message = f"There is no parameter {name!r} here; remove it."
            violations.append(Violation(("query", name), message, "unknown_field"))
            continue
        is_list = _is_list(types[name])
        if len(texts) > 1 and not is_list:
            message = f"{name} is given {len(texts)} times; give it once."
            violations.append(Violation(("query", name), message, "duplicate"))
            continue
        try:
            values[name] = msgspec.convert(
                texts if is_list else texts[0], types[name], strict=False
            )
        except msgspec.ValidationError as error:
            message = f"{name} cannot be {', '.join(texts)!r}: {error}."
            violations.append(Violation(("query", name), message, "invalid_value"))
            continue
        if values[name] is None:  # read from the word null, where no text is taken
            message = f"{name} cannot be null in an address; give a value, or leave it out."
            violations.append(Violation(("query", name), message, "invalid_value"))
    for field in msgspec.structs.fields(shape):
        if field.required and field.encode_name not in given:
            message = f"{field.encode_name} is missing; add it to the address."
            violations.append(Violation(("query", field.encode_name), message, "missing"))
    if violations:
        raise InvalidRequestError(violations=violations)
    return shape(**{fields[name]: value for name, value in values.items()})


def _is_list(annotated: Any) -> bool:
    options = [annotated, *get_args(annotated)]
    return any(get_origin(option) is list for option in options)
