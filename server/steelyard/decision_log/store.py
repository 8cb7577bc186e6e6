"""Rows of decisions kept for feedback, and of the feedback on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, or_, select

from steelyard.decision_log.tables import decisions, feedback

_INSERT_DECISION = insert(decisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """An answer as it is kept for feedback."""

    id: str
    account_id: str
    created_at: float
    model: str
    version: str | None = None
    request: bytes
    results: bytes
    metadata: bytes | None = None
    outcome_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    total_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ObservedDecision:
    """A kept answer, and the outcomes observed of it by decision id."""

    decision: StoredDecision
    outcomes: dict[str, Any]


def insert_decision(connection: Connection, decision: StoredDecision) -> None:
    """Keep an answer."""
    connection.execute(
        _INSERT_DECISION,
        {
            "id": decision.id,
            "account_id": decision.account_id,
            "created_at": decision.created_at,
            "model": decision.model,
            "version": decision.version,
            "request": decision.request,
            "results": decision.results,
            "outcome_names": msgspec.json.encode(decision.outcome_names),
            "metadata": decision.metadata,
            "total_ms": decision.total_ms,
        },
    )


def find_decision(
    connection: Connection, account_id: str, decision_id: str, not_before: float
) -> StoredDecision | None:
    """Return a kept answer."""
    row = connection.execute(
        select(decisions).where(
            decisions.c.id == decision_id,
            decisions.c.account_id == account_id,
            decisions.c.created_at >= not_before,
        )
    ).first()
    return None if row is None else _stored(row)


def put_feedback(
    connection: Connection, decision_id: str, outcomes: Mapping[str, Any], *, recorded_at: float
) -> None:
    """Keep observed outcomes; one that was reported before for the same name is replaced."""
    if not outcomes:
        return
    connection.execute(
        delete(feedback).where(
            feedback.c.decision_id == decision_id, feedback.c.name.in_(list(outcomes))
        )
    )
    connection.execute(
        insert(feedback),
        [
            {
                "decision_id": decision_id,
                "name": name,
                "outcome": msgspec.json.encode(outcome),
                "recorded_at": recorded_at,
            }
            for name, outcome in outcomes.items()
        ],
    )


def feedback_of(connection: Connection, decision_id: str) -> dict[str, Any]:
    """Return the outcomes observed for a kept answer, by decision id; empty when there are none."""
    rows = connection.execute(
        select(feedback.c.name, feedback.c.outcome)
        .where(feedback.c.decision_id == decision_id)
        .order_by(feedback.c.name)
    )
    return {row.name: msgspec.json.decode(row.outcome) for row in rows}


def count_decisions(
    connection: Connection,
    account_id: str,
    *,
    since: float,
    until: float | None = None,
    model: str | None = None,
    ids: Collection[str] | None = None,
) -> int:
    """Count the kept answers of an account."""
    where = in_window(account_id, since, until, model, ids)
    return connection.execute(
        select(func.count()).select_from(decisions).where(*where)
    ).scalar_one()


def page_observed(
    connection: Connection,
    account_id: str,
    *,
    since: float,
    until: float | None = None,
    model: str | None = None,
    ids: Collection[str] | None = None,
    after: tuple[float, str] | None = None,
    limit: int,
) -> list[ObservedDecision]:
    """Return a page of the kept answers that have feedback, the oldest first."""
    where = in_window(account_id, since, until, model, ids)
    where.append(select(feedback.c.name).where(feedback.c.decision_id == decisions.c.id).exists())
    if after is not None:
        at, id_ = after
        where.append(
            or_(
                decisions.c.created_at > at,
                and_(decisions.c.created_at == at, decisions.c.id > id_),
            )
        )
    found = connection.execute(
        select(decisions)
        .where(*where)
        .order_by(decisions.c.created_at, decisions.c.id)
        .limit(limit)
    ).all()
    outcomes: dict[str, dict[str, Any]] = {row.id: {} for row in found}
    for row in connection.execute(
        select(feedback).where(feedback.c.decision_id.in_(list(outcomes))).order_by(feedback.c.name)
    ):
        outcomes[row.decision_id][row.name] = msgspec.json.decode(row.outcome)
    return [ObservedDecision(_stored(row), outcomes[row.id]) for row in found]


def delete_decisions_before(connection: Connection, before: float, *, limit: int) -> int:
    """Remove kept answers older than a time, with their feedback."""
    old = select(decisions.c.id).where(decisions.c.created_at < before).limit(limit)
    return connection.execute(delete(decisions).where(decisions.c.id.in_(old))).rowcount


def in_window(
    account_id: str,
    since: float,
    until: float | None,
    model: str | None,
    ids: Collection[str] | None = None,
) -> list[ColumnElement[bool]]:
    """Return the conditions of an account's answers; the arguments are as for ``count_decisions``."""
    where = [decisions.c.account_id == account_id, decisions.c.created_at >= since]
    if until is not None:
        where.append(decisions.c.created_at < until)
    if model is not None:
        where.append(or_(decisions.c.model == model, decisions.c.version == model))
    if ids is not None:
        where.append(decisions.c.id.in_(ids))
    return where


def _stored(row: Row[Any]) -> StoredDecision:
    return StoredDecision(
        id=row.id,
        account_id=row.account_id,
        created_at=row.created_at,
        model=row.model,
        version=row.version,
        request=bytes(row.request),
        results=bytes(row.results),
        metadata=None if row.metadata is None else bytes(row.metadata),
        outcome_names=msgspec.json.decode(row.outcome_names, type=dict[str, list[str]]),
        total_ms=row.total_ms,
    )
