"""Requests that name a decision instead of asking its questions; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from steelyard.decisions.wire import REFERENCE_PATTERN, NamedDecideRequest, Storing
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Path, Violations, show

#: The alias of a reference without one.
PRODUCTION = "production"
#: The alias of a growth's proposed version.
PROPOSED = "proposed"
#: What the name of a model begins with that is a named decision, where a wire has no field for one.
MODEL_PREFIX = "decision:"

_REFERENCE = re.compile(REFERENCE_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """A named decision at an alias or at the number of a version."""

    name: str
    at: str | int = PRODUCTION

    def __str__(self) -> str:
        return f"{self.name}@{self.at}"


def parse_reference(text: str) -> Reference | None:
    """Return the reference in a text; ``None`` where it has another form.

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
    store: Storing | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    #: Where the context stands in the body.
    context_path: Path = (*BODY, "context")


def names_decision(payload: Any) -> bool:
    """Whether the model that a body names is a named decision."""
    model = payload.get("model") if isinstance(payload, Mapping) else None
    return isinstance(model, str) and model.startswith(MODEL_PREFIX)


def read_named(payload: Mapping[str, Any]) -> NamedRequest:
    """Read a request for a named decision, or refuse it with everything that is wrong in it."""
    violations = Violations()
    value = open_payload(payload, NamedDecideRequest, violations)
    reference = read_reference(value.get("decision"), (*BODY, "decision"), violations)
    violations.raise_if_any()
    assert reference is not None  # noqa: S101  anything else was refused
    return NamedRequest(
        reference,
        value["context"],
        value.get("store"),
        value.get("metadata") or {},
        value.get("fields") or {},
    )


def read_named_model(
    payload: Mapping[str, Any], shape: type[Struct], context: str
) -> tuple[NamedRequest, dict[str, Any]]:
    """Read a body of another wire whose model is a named decision: the request, and the body's fields.

    ``context`` is the field that has the context. The questions are the version's: other fields are
    refused unless they are empty, as clients send them that have no question to ask.
    """
    violations = Violations()
    known = shape.__struct_fields__
    fields = {
        name: value
        for name, value in payload.items()
        if name in known or value not in (None, [], {})
    }
    value = open_payload(fields, shape, violations)
    text = str(payload["model"]).removeprefix(MODEL_PREFIX)
    reference = read_reference(text, (*BODY, "model"), violations)
    violations.raise_if_any()
    assert reference is not None  # noqa: S101  anything else was refused
    given = value.get("fields") or {}
    request = NamedRequest(reference, value[context], fields=given, context_path=(*BODY, context))
    return request, value


def read_reference(text: Any, path: Path, violations: Violations) -> Reference | None:
    """Return the reference in a text, or note that it has another form."""
    reference = parse_reference(text) if isinstance(text, str) else None
    if isinstance(text, str) and reference is None:
        violations.add(
            path,
            f"is {show(text)}; give a name such as support_triage, with @alias or @number behind it "
            "where it is not production that is meant.",
            "wrong_form",
        )
    return reference
