"""Requests that carry rows: the fields around the rows checked, the rows left for the reader."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from steelyard.datasets.wire import DEFAULT_FRACTION, AddRows, CreateDataset
from steelyard.ledger.max_price import check_max_price
from steelyard.wire.decoding import decode
from steelyard.wire.json_values import check_json, decode_json
from steelyard.wire.payloads import check_shape, refuse_nul
from steelyard.wire.violations import BODY, Violations

Shape = TypeVar("Shape", bound=Struct)

#: Parts that rows come in; the first excludes the others.
PARTS = ("examples", "training", "evaluation")

_NUMBER = re.compile(r"(\d{1,20}(\.\d{0,20})?|\.\d{1,20})([eE][-+]?\d{1,2})?", re.ASCII)


class _Parts(Struct):
    """A body whose rows stay JSON."""

    examples: list[Raw] | None = None
    training: list[Raw] | None = None
    evaluation: list[Raw] | None = None


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """A request that brings rows."""

    parts: dict[str, list[Any]] = field(default_factory=dict)
    evaluation_fraction: float = DEFAULT_FRACTION
    name: str | None = None
    max_price_usd: str | None = None
    family: str | None = None


def read_body(
    payload: bytes | Mapping[str, Any],
    shape: type[CreateDataset | AddRows],
    value: Any = None,
) -> RowsRequest:
    """Read the body of a create or an add-rows request.

    ``value`` is its JSON where that is decoded already; the rows go from it.
    """
    if not isinstance(payload, bytes):
        value = dict(payload)
    elif value is None:
        value = decode_json(payload)
    parts: dict[str, list[Any]] = {}
    if isinstance(value, dict):
        parts = {name: value[name] for name in PARTS if isinstance(value.get(name), list)}
        # The reader checks the rows; here an empty array stands for them.
        value.update((name, []) for name in parts)
    if isinstance(payload, bytes):
        refuse_nul(payload, value, shape)
    violations = Violations()
    check_json(value, violations)
    check_shape(value, shape, violations, BODY)
    fields = value if isinstance(value, dict) else {}
    check_fields(fields, violations)
    _check_parts(fields, violations)
    violations.raise_if_any()
    if isinstance(payload, bytes):
        try:
            raw = decode(payload, _Parts)
            parts = {name: cast("list[Any]", getattr(raw, name)) for name in parts}
        except msgspec.MsgspecError:
            # A row is no strict JSON, such as one with NaN or half a character: the reader says
            # which, of each row's own text.
            parts = {name: [json.dumps(row).encode() for row in parts[name]] for name in parts}
    return RowsRequest(
        parts=parts,
        evaluation_fraction=_fraction(fields),
        name=fields.get("name"),
        max_price_usd=fields.get("max_price_usd"),
        family=fields.get("family"),
    )


def read_form(
    fields: Mapping[str, str], parts: Collection[str], shape: type[CreateDataset | AddRows]
) -> RowsRequest:
    """Read the fields of a form, of headers or of a query, whose rows come as files."""
    value: dict[str, Any] = {**fields, **{name: [] for name in parts}}
    text = fields.get("evaluation_fraction")
    if text is not None and _NUMBER.fullmatch(text):
        value["evaluation_fraction"] = float(text)
    return read_body(value, shape)


def check_fields(fields: Mapping[str, Any], violations: Violations) -> None:
    """Note a blank name, or a price that is no amount of USD, of a form of any kind."""
    name = fields.get("name")
    if isinstance(name, str) and name and not name.strip():
        violations.add((*BODY, "name"), "is blank; name the dataset.", "blank")
    check_max_price(fields, violations)


def _check_parts(fields: Mapping[str, Any], violations: Violations) -> None:
    given = [name for name in PARTS if fields.get(name) is not None]
    if not given:
        violations.add(
            (*BODY, "examples"), "is missing; give examples, or training and evaluation.", "missing"
        )
    elif given[0] == PARTS[0] and len(given) > 1:
        violations.add(
            (*BODY, "examples"),
            f"is given beside {' and '.join(given[1:])}; give the one or the other.",
            "refused",
        )


def _fraction(fields: Mapping[str, Any]) -> float:
    fraction = fields.get("evaluation_fraction")
    return DEFAULT_FRACTION if fraction is None else float(fraction)
