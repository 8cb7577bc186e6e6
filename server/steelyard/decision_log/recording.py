"""Storing an answer: what the log keeps of it, as a write for the transaction that settles it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Connection

from steelyard.decision_log.store import StoredDecision, insert_decision
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import DecideResponse


def record_answer(
    account_id: str, at: float, request: ValidRequest, answer: DecideResponse
) -> Callable[[Connection], None]:
    """Return the write that stores an answer, for the transaction that settles it."""
    asked: dict[str, Any] = {
        "context": request.context,
        "decisions": [_as_sent(decision) for decision in request.decisions],
    }
    if request.temperature is not None:
        asked["temperature"] = request.temperature
    stored = StoredDecision(
        id=answer.id,
        account_id=account_id,
        created_at=at,
        model=answer.model,
        version=answer.version if isinstance(answer.version, str) else None,
        request=msgspec.json.encode(asked),
        results=msgspec.json.encode(answer.decisions),
        metadata=msgspec.json.encode(request.metadata) if request.metadata else None,
        outcome_names={
            decision.id: list(decision.outcomes.names) for decision in request.decisions
        },
        total_ms=answer.timing_ms.get("total"),
    )
    return functools.partial(insert_decision, decision=stored)


def _as_sent(decision: Decision) -> dict[str, Any]:
    """Return a decision in the one form that any valid spelling of it has; its policy is left out."""
    names, descriptions = decision.outcomes.names, decision.outcomes.descriptions
    sent: dict[str, Any] = {"id": decision.id, "kind": decision.kind, "question": decision.question}
    if decision.kind == "ordinal":
        return {**sent, "outcomes": list(names), "rubric": list(descriptions)}
    return {**sent, "outcomes": dict(zip(names, descriptions, strict=True))}
