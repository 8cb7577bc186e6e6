"""Rows of shadows and of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from steelyard.decision_log.store import is_of_named
from steelyard.decision_log.tables import decisions
from steelyard.decision_log.withheld import has_text
from steelyard.decisions.named import MODEL_PREFIX
from steelyard.shadows.tables import shadow_answers, shadows


def put_shadow(connection: Connection, account_id: str, family: str, **values: Any) -> None:
    """Keep a family's shadow in place of the one before."""
    delete_shadow(connection, account_id, family)
    connection.execute(insert(shadows).values(account_id=account_id, family=family, **values))


def delete_shadow(connection: Connection, account_id: str, family: str) -> bool:
    """Remove a family's shadow, and return whether there was one; its answers stay."""
    where = (shadows.c.account_id == account_id, shadows.c.family == family)
    return bool(connection.execute(delete(shadows).where(*where)).rowcount)


def find_shadow(connection: Connection, account_id: str, family: str) -> Row[Any] | None:
    """Return a family's shadow."""
    where = (shadows.c.account_id == account_id, shadows.c.family == family)
    return connection.execute(select(shadows).where(*where)).first()


def all_shadows(connection: Connection) -> Sequence[Row[Any]]:
    """Return the shadows of every account."""
    return connection.execute(select(shadows)).all()


def newest_untaken(
    connection: Connection, shadow: Row[Any], *, since: float, limit: int
) -> list[str]:
    """Return ids of a family's stored answers that no shadow took up, the newest first."""
    rows = connection.execute(
        select(decisions.c.id)
        .outerjoin(shadow_answers, shadow_answers.c.decision_id == decisions.c.id)
        .where(
            decisions.c.account_id == shadow.account_id,
            decisions.c.created_at >= since,
            _is_answer_of(shadow.family),
            shadow_answers.c.decision_id.is_(None),
        )
        .order_by(decisions.c.created_at.desc())
        .limit(limit)
    )
    return list(rows.scalars())


def _is_answer_of(subject: str) -> ColumnElement[bool]:
    """Return the condition of the answers of a family, or of a named decision by its model's name."""
    if subject.startswith(MODEL_PREFIX):
        return is_of_named(decisions.c.named, subject.removeprefix(MODEL_PREFIX))
    return decisions.c.model == subject


def take(
    connection: Connection, shadow: Row[Any], ids: Sequence[str], at: float
) -> list[tuple[str, bytes]]:
    """Take the answers of some ids that no process took yet; return their ids and requests."""
    taken = select(shadow_answers.c.decision_id).where(shadow_answers.c.decision_id.in_(ids))
    free = connection.execute(
        select(decisions.c.id, decisions.c.request).where(
            decisions.c.id.in_(ids), decisions.c.id.not_in(taken)
        )
    ).all()
    if free:
        connection.execute(
            insert(shadow_answers),
            [
                {
                    "decision_id": row.id,
                    "account_id": shadow.account_id,
                    "family": shadow.family,
                    "model": shadow.model,
                    "taken_at": at,
                }
                for row in free
            ],
        )
    return [(row.id, row.request) for row in free if has_text(row.request)]


def put_results(connection: Connection, results: Mapping[str, bytes]) -> None:
    """Store a shadow's answers, by the id of the served answer."""
    for decision_id, result in results.items():
        connection.execute(
            update(shadow_answers)
            .where(shadow_answers.c.decision_id == decision_id)
            .values(results=result)
        )


def answered_pairs(
    connection: Connection, shadow: Row[Any], *, since: float, until: float, limit: int
) -> Sequence[Row[str, bytes, bytes]]:
    """Return id, the family's results and the shadow's, of answers that both scored, the newest first."""
    return connection.execute(
        select(
            decisions.c.id, decisions.c.results, shadow_answers.c.results.label("shadow_results")
        )
        .join(shadow_answers, shadow_answers.c.decision_id == decisions.c.id)
        .where(
            shadow_answers.c.account_id == shadow.account_id,
            shadow_answers.c.family == shadow.family,
            shadow_answers.c.model == shadow.model,
            shadow_answers.c.results.is_not(None),
            decisions.c.created_at >= since,
            decisions.c.created_at < until,
        )
        .order_by(decisions.c.created_at.desc())
        .limit(limit)
    ).all()
