"""The first pass over a request's body: strict JSON, in the shape of the wire's struct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from steelyard.wire.json_values import check_json, decode_json
from steelyard.wire.shapes import check_shape
from steelyard.wire.violations import BODY, Violations

Shape = TypeVar("Shape", bound=msgspec.Struct)


def open_payload(
    payload: bytes | bytearray | Mapping[str, Any] | object,
    shape: type[msgspec.Struct],
    found: Violations,
) -> dict[str, Any]:
    """Return a request's fields, noting what is wrong with the JSON and with its shape."""
    value: Any = payload
    if isinstance(payload, bytes | bytearray):
        value = decode_json(bytes(payload))
    elif not isinstance(payload, dict) and isinstance(payload, Mapping):
        value = dict(payload)
    check_json(value, found)
    if found.has(BODY):
        # Too many values to look at, or not a value at all: nothing more can be said of it.
        found.raise_if_any()
    check_shape(value, shape, found, BODY)
    if not isinstance(value, dict):
        found.raise_if_any()
    fields: dict[str, Any] = value
    return fields


def read_payload(payload: object, shape: type[Shape]) -> Shape:
    """Return a request as its struct, where the struct says all there is to check."""
    found = Violations()
    fields = open_payload(payload, shape, found)
    found.raise_if_any()
    return msgspec.convert(fields, shape)
