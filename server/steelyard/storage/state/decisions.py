"""Rows of decisions kept for feedback, and of the feedback on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, insert, select

from steelyard.storage.state.tables import decisions, feedback


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """An answer as it is kept for feedback.

    Parameters
    ----------
    id : str
        The answer's id, ``dec_…``.
    account_id : str
        Whose it is.
    created_at : float
        Unix seconds.
    model : str
        The model that answered.
    version : str or None
        The version of it, where it has versions.
    request : bytes
        The request as JSON.
    results : bytes
        The results by decision id, as JSON.
    metadata : bytes or None
        The caller's metadata as JSON.
    outcome_names : mapping of str to sequence of str
        Decision id to its outcomes' names in order.
    """

    id: str
    account_id: str
    created_at: float
    model: str
    version: str | None = None
    request: bytes
    results: bytes
    metadata: bytes | None = None
    outcome_names: Mapping[str, Sequence[str]] = field(default_factory=dict)


def insert_decision(connection: Connection, decision: StoredDecision) -> None:
    """Keep an answer."""
    connection.execute(
        insert(decisions),
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
        },
    )


def find_decision(
    connection: Connection, account_id: str, decision_id: str, not_before: float
) -> StoredDecision | None:
    """Give a kept answer.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        In a transaction.
    account_id : str
        Who asks; another's answer is not found.
    decision_id : str
        The answer's id.
    not_before : float
        Unix seconds; an older answer is not found, whether or not it was removed yet.
    """
    row = connection.execute(
        select(decisions).where(
            decisions.c.id == decision_id,
            decisions.c.account_id == account_id,
            decisions.c.created_at >= not_before,
        )
    ).first()
    if row is None:
        return None
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
    )


def put_feedback(
    connection: Connection,
    decision_id: str,
    outcomes: Mapping[str, Any],
    *,
    recorded_at: float,
) -> None:
    """Keep observed outcomes; one that was reported before for the same name is replaced.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        In a transaction.
    decision_id : str
        The kept answer's id.
    outcomes : mapping of str to object
        Decision id within the answer to what was observed: a name, or name to probability.
    recorded_at : float
        Unix seconds.
    """
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
    """Give the outcomes observed for a kept answer, by decision id; empty when there are none."""
    rows = connection.execute(
        select(feedback.c.name, feedback.c.outcome)
        .where(feedback.c.decision_id == decision_id)
        .order_by(feedback.c.name)
    )
    return {row.name: msgspec.json.decode(row.outcome) for row in rows}


def delete_decisions_before(connection: Connection, before: float, *, limit: int) -> int:
    """Remove kept answers older than a time, with their feedback.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        In a transaction.
    before : float
        Unix seconds.
    limit : int
        The most to remove at once, so that other writes wait briefly.

    Returns
    -------
    int
        How many were removed; ``limit`` when there may be more.
    """
    old = select(decisions.c.id).where(decisions.c.created_at < before).limit(limit)
    return connection.execute(delete(decisions).where(decisions.c.id.in_(old))).rowcount
