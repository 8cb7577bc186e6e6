"""Rows of growths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from steelyard.growth.tables import growths


def put_growth(connection: Connection, values: Mapping[str, Any]) -> None:
    """Store a growth in place of the one before."""
    connection.execute(delete(growths).where(growths.c.named_id == values["named_id"]))
    connection.execute(insert(growths), dict(values))


def find_growth(connection: Connection, named_id: str) -> Row[Any] | None:
    """Return the growth of a named decision."""
    return connection.execute(select(growths).where(growths.c.named_id == named_id)).first()


def change_growth(connection: Connection, named_id: str, **values: Any) -> None:
    """Write columns of a growth."""
    connection.execute(update(growths).where(growths.c.named_id == named_id).values(**values))


def due_growths(connection: Connection, before: float, now: float) -> Sequence[Row[Any]]:
    """Return the growths that go on and had their last turn before a time, the longest ago first."""
    table = growths.c
    return connection.execute(
        select(growths)
        .where(table.stopped_at.is_(None), table.turned_at < before, table.claimed_until < now)
        .order_by(table.turned_at)
        .limit(100)
    ).all()


def claim(connection: Connection, named_id: str, now: float, until: float) -> Row[Any] | None:
    """Keep a growth from other processes, and return it; ``None`` where one has it, or it was stopped."""
    table = growths.c
    claimed = connection.execute(
        update(growths)
        .where(table.named_id == named_id, table.claimed_until < now, table.stopped_at.is_(None))
        .values(claimed_until=until)
    )
    return find_growth(connection, named_id) if claimed.rowcount else None
