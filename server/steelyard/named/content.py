"""The content of a named decision's version: checked like a request, encoded, hashed and read; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from steelyard.decisions.named import MODEL_PREFIX, NamedRequest
from steelyard.decisions.rules import Rulebook, read_rulebook
from steelyard.decisions.rules_wire import Fields, RuleInput
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.decisions.wire import NamedUse
from steelyard.named.wire import NamedContent
from steelyard.wire.decoding import convert
from steelyard.wire.payloads import read_payload
from steelyard.wire.storing import StoreSetting
from steelyard.wire.violations import BODY, Path, Violations

_Content = TypeVar("_Content", bound=NamedContent)

#: The parts of a version's content that no request in full has.
_RULE_FIELDS = frozenset(("fields", "rules", "otherwise"))


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
    declared = msgspec.to_builtins(content.fields or {})
    fields["fields"] = {name: _given(field) for name, field in declared.items()} or None
    return {
        **_given(msgspec.to_builtins(fields)),
        "decisions": [_decision_fields(decision) for decision in content.decisions],
    }


def questions_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a version's content as a request asks it: without fields and rules."""
    return {name: value for name, value in content.items() if name not in _RULE_FIELDS}


def rulebook_of(content: Mapping[str, Any]) -> Rulebook | None:
    """Return the fields and rules of a version's content, or refuse the content."""
    return _check(fields_of(read_payload(content, NamedContent))).rulebook


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
    if questions.rulebook is not None:
        questions.rulebook.check(request.fields, use.reference)
    elif request.fields:
        Rulebook({}).check(request.fields, use.reference)
    return replace(
        questions,
        context=request.context,
        fields=request.fields,
        store=request.store,
        store_limit=store,
        metadata=request.metadata,
        context_path=request.context_path,
        named=use,
    )


def _check(content: Mapping[str, Any]) -> ValidRequest:
    request = read_request({"context": "", **questions_of(content)})
    if _RULE_FIELDS.isdisjoint(content):
        return request
    fields = convert(content.get("fields") or {}, Fields)
    rules = convert(content.get("rules") or [], list[RuleInput])
    book = read_rulebook(fields, rules, content.get("otherwise"), request.decisions)
    return replace(request, rulebook=book)


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
