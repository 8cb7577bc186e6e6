"""Jobs whose price is held when they are queued, and settled in the transaction that ends them.

Their tables have the columns of ``steelyard.jobs.store``, and ``price_nano``, ``charge`` and
``updated_at``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, func, insert, select, update

from steelyard.errors import QueueFullError, TenantQueueFullError
from steelyard.jobs import store as jobs
from steelyard.operations import holds
from steelyard.wire.jobs import UNFINISHED

#: Seconds after which a full queue may have a place.
_FULL_RETRY_S = 30.0


def insert_job(
    connection: Connection,
    table: Table,
    values: dict[str, Any],
    *,
    key_id: str | None,
    route: str,
    what: str,
) -> None:
    """Add a queued job, and hold its price."""
    price_nano = values["price_nano"]
    connection.execute(
        insert(table),
        {
            "status": "queued",
            "generation": 1,
            "attempt": 1,
            "charge": "reserved" if price_nano else "free",
            **values,
        },
    )
    if price_nano:
        holds.hold(
            connection,
            _operation_id(values["id"]),
            account_id=values["account_id"],
            key_id=key_id,
            route=route,
            what=what,
            amount_nano=price_nano,
            at=values["created_at"],
        )


def find_job(
    connection: Connection, table: Table, job_id: str, account_id: str | None = None
) -> Row[Any] | None:
    """Return a job; ``None`` when there is none, or it is not the account's."""
    conditions = [table.c.id == job_id]
    if account_id is not None:
        conditions.append(table.c.account_id == account_id)
    return connection.execute(select(table).where(*conditions)).first()


def count_backlog(connection: Connection, table: Table, account_id: str) -> tuple[int, int]:
    """Count the jobs that have not ended: in all, and of one account."""
    of_account = func.count().filter(table.c.account_id == account_id)
    row = connection.execute(
        select(func.count(), of_account).where(table.c.status.in_(UNFINISHED))
    ).one()
    return row[0], row[1]


def check_room(
    connection: Connection,
    table: Table,
    account_id: str,
    noun: str,
    *,
    bound: str,
    most: int,
    most_of_account: int,
) -> None:
    """Refuse one more job where as many as may be have not ended.

    ``noun`` is their plural, and ``bound`` how many of an account may wait, in words.
    """
    total, of_account = count_backlog(connection, table, account_id)
    if of_account >= most_of_account:
        raise TenantQueueFullError(
            f"{of_account} {noun} of the account have not ended, and {bound} may wait; ask again "
            "when some have.",
            retry_after_s=_FULL_RETRY_S,
        )
    if total >= most:
        raise QueueFullError(
            f"The server's queue of {noun} is full; ask again after Retry-After.",
            retry_after_s=_FULL_RETRY_S,
        )


def move(
    connection: Connection,
    table: Table,
    job_id: str,
    status: str,
    *,
    at: float,
    only_if: Sequence[str],
    **values: Any,
) -> bool:
    """Move a job to another status; one that fails or is cancelled frees the money that it holds."""
    moved = jobs.move(connection, table, job_id, status, at=at, only_if=only_if, **values)
    if moved and status in {"failed", "cancelled"}:
        settle(connection, table, job_id, is_charged=False, at=at)
    return moved


def settle(
    connection: Connection, table: Table, job_id: str, *, is_charged: bool, at: float
) -> None:
    """Charge a job's hold, or release it; nothing without a hold."""
    row = find_job(connection, table, job_id)
    if row is None or row.charge != "reserved":
        return
    holds.settle(
        connection,
        _operation_id(job_id),
        reserved_nano=row.price_nano,
        amount_nano=row.price_nano if is_charged else 0,
        at=at,
    )
    connection.execute(
        update(table)
        .where(table.c.id == job_id)
        .values(charge="charged" if is_charged else "released")
    )


def _operation_id(job_id: str) -> str:
    return f"op_{job_id}"
