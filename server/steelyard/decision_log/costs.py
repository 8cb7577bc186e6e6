"""Costs of decisions, from the ledger."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from steelyard.decision_log.store import DECIDING, is_of_named, stretch_of
from steelyard.ledger.tables import ledger_entries
from steelyard.operations.tables import operations


def costs_between(
    connection: Connection,
    account_id: str,
    *,
    since: float,
    until: float,
    model: str | None = None,
    named: str | None = None,
    first: float,
    width: float,
) -> dict[int, int]:
    """Return nano-dollars that decisions cost, stored or not, in each stretch after ``first``."""
    entry = ledger_entries.c
    place = stretch_of(connection, entry.created_at, first, width)
    where = [
        entry.account_id == account_id,
        entry.book == "revenue",
        entry.created_at >= since,
        entry.created_at < until,
        operations.c.route.in_(DECIDING),
    ]
    if model is not None:
        where.append(operations.c.model == model)
    if named is not None:
        where.append(is_of_named(operations.c.named, named))
    rows = connection.execute(
        select(place, func.sum(entry.amount_nano))
        .join(operations, operations.c.id == entry.operation_id)
        .where(*where)
        .group_by(place)
    )
    return {int(at): int(nano) for at, nano in rows}  # a sum of PostgreSQL's is a decimal
