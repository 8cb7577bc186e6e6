"""Requests that name a decision instead of asking its questions; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.decisions.wire import REFERENCE_PATTERN, NamedDecideRequest
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Violations, show

#: The alias of a reference without one.
PRODUCTION = "production"

_REFERENCE = re.compile(REFERENCE_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """A named decision at an alias or at the number of a version."""

    name: str
    at: str | int = PRODUCTION

    def __str__(self) -> str:
        return f"{self.name}@{self.at}"


def parse_reference(text: str) -> Reference | None:
    """Return what a text names; ``None`` where it has another form.

    >>> parse_reference("support_triage"), parse_reference("support_triage@7").at
    (Reference(name='support_triage', at='production'), 7)
    """
    if _REFERENCE.fullmatch(text) is None:
        return None
    name, _, at = text.partition("@")
    return Reference(name, int(at) if at.isdigit() else at or PRODUCTION)


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """A valid request for a named decision, whose version is still to be found."""

    reference: Reference
    context: Any
    store: bool | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def read_named(payload: Mapping[str, Any]) -> NamedRequest:
    """Read a request for a named decision, or refuse it with everything that is wrong in it."""
    violations = Violations()
    value = open_payload(payload, NamedDecideRequest, violations)
    text = value.get("decision")
    reference = parse_reference(text) if isinstance(text, str) else None
    if isinstance(text, str) and reference is None:
        violations.add(
            (*BODY, "decision"),
            f"is {show(text)}; give a name such as support_triage, with @alias or @number behind it "
            "where it is not production that is meant.",
            "wrong_form",
        )
    violations.raise_if_any()
    assert reference is not None  # noqa: S101  anything else was refused
    return NamedRequest(
        reference, value["context"], value.get("store"), value.get("metadata") or {}
    )
