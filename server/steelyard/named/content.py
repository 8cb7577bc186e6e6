"""The content of a named decision's version: checked like a request, encoded, hashed and read; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from steelyard.decisions.named import MODEL_PREFIX, NamedRequest
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.decisions.wire import NamedUse
from steelyard.named.wire import NamedContent
from steelyard.wire.payloads import read_payload
from steelyard.wire.storing import StoreSetting
from steelyard.wire.violations import BODY, Path, Violations

_Content = TypeVar("_Content", bound=NamedContent)


def read_content(payload: Any, shape: type[_Content]) -> _Content:
    """Return a body with a version's content, which has to be that of a valid request."""
    content = read_payload(payload, shape)
    _check_models(content)
    _check(fields_of(content))
    return content


def fields_of(content: NamedContent) -> dict[str, Any]:
    """Return a version's content as plain values, without absent fields."""
    fields = {name: getattr(content, name) for name in NamedContent.__struct_fields__}
    # A version that does not say so is the same as one that says no.
    fields["escalate"] = fields["escalate"] or None
    return {
        **_given(fields),
        "decisions": [_decision_fields(decision) for decision in content.decisions],
    }


def encode(fields: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the bytes that are stored, and their SHA-256."""
    content = msgspec.json.encode(fields)
    return content, hashlib.sha256(content).hexdigest()


def read_stored(content: bytes) -> ValidRequest:
    """Return the request of a stored version, whose context is still to come."""
    return _check(msgspec.json.decode(content))


def ask(
    questions: ValidRequest, request: NamedRequest, use: NamedUse, store: StoreSetting
) -> ValidRequest:
    """Return the request that asks a version's questions about a context; ``store`` is the decision's."""
    return replace(
        questions,
        context=request.context,
        store=request.store,
        store_limit=store,
        metadata=request.metadata,
        context_path=request.context_path,
        named=use,
    )


def _check(fields: Mapping[str, Any]) -> ValidRequest:
    return read_request({"context": "", **fields})


def _check_models(content: NamedContent) -> None:
    """Refuse a named decision in place of a model: its version has questions of its own."""
    violations = Violations()
    named: list[tuple[Path, str | None]] = [((*BODY, "model"), content.model)]
    if isinstance(content.fallback, list):
        named += [((*BODY, "fallback", n), name) for n, name in enumerate(content.fallback)]
    for path, name in named:
        if name is not None and name.startswith(MODEL_PREFIX):
            violations.add(path, "is a named decision; name a model or a family.", "not_allowed")
    violations.raise_if_any()


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _decision_fields(decision: msgspec.Struct) -> dict[str, Any]:
    fields = _given(msgspec.to_builtins(decision))
    for name in ("policy", "abstain"):
        if name in fields:
            fields[name] = _given(fields[name])
    return fields
