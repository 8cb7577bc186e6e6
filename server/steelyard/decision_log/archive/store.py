"""Rows of archived files and of the jobs that write them, and the rows that move."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from steelyard.decision_log.archive.files import WrittenFile
from steelyard.decision_log.store import AnswerCriteria
from steelyard.decision_log.tables import decision_archivings, decision_files, decisions
from steelyard.ids import new_id
from steelyard.jobs import store as jobs
from steelyard.jobs.store import PendingJob
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.storage.tables import accounts
from steelyard.wire.jobs import UNFINISHED

#: Rows that a database driver hands over at a time: each may hold a long context.
_AT_A_TIME = 50
_COLUMNS = decisions.c


def files_with(connection: sa.Connection, criteria: AnswerCriteria) -> Sequence[sa.Row[Any]]:
    """Return the files that may have matching answers, in the order of the criteria."""
    table = decision_files.c
    where = [table.account_id == criteria.account_id, table.last_at >= criteria.since]
    if criteria.until is not None:
        where.append(table.first_at < criteria.until)
    if criteria.after is not None:
        at = criteria.after[0]
        where.append(table.first_at <= at if criteria.newest_first else table.last_at >= at)
    if criteria.ids is not None:
        where.append(table.greatest_id >= min(criteria.ids))
        where.append(table.least_id <= max(criteria.ids))
    order = (table.last_at, table.last_id)
    return connection.execute(
        sa.select(decision_files)
        .where(*where)
        .order_by(*((column.desc() for column in order) if criteria.newest_first else order))
    ).all()


def ids_between(
    connection: sa.Connection, account_id: str, first_at: float, last_at: float
) -> set[str]:
    """Return the ids of the answers of a span that are in the state."""
    query = sa.select(_COLUMNS.id).where(
        _COLUMNS.account_id == account_id,
        _COLUMNS.created_at >= first_at,
        _COLUMNS.created_at <= last_at,
    )
    return set(connection.scalars(query))


def next_rows(
    connection: sa.Connection,
    account_id: str,
    day: int,
    after: tuple[float, str] | None,
    referring_columns: Sequence[sa.ColumnElement[str]],
    *,
    limit: int,
    n_bytes: int,
) -> list[sa.Row[Any]]:
    """Return answers of a day that nothing refers to, the oldest first, up to a number of bytes."""
    start = day * SECONDS_A_DAY
    where = [
        _COLUMNS.account_id == account_id,
        _COLUMNS.created_at >= (start if after is None else after[0]),
        _COLUMNS.created_at < start + SECONDS_A_DAY,
        *_unreferred(referring_columns),
    ]
    if after is not None:
        at, id_ = after
        same = sa.and_(_COLUMNS.created_at == at, _COLUMNS.id > id_)
        where.append(sa.or_(_COLUMNS.created_at > at, same))
    query = (
        sa.select(decisions)
        .where(*where)
        .order_by(_COLUMNS.created_at, _COLUMNS.id)
        .limit(limit)
        .execution_options(yield_per=_AT_A_TIME)
    )
    rows: list[sa.Row[Any]] = []
    with connection.execute(query) as result:
        for row in result:
            rows.append(row)
            n_bytes -= len(row.request) + len(row.results)
            if n_bytes <= 0:
                break
    return rows


def _unreferred(referring_columns: Sequence[sa.ColumnElement[str]]) -> list[sa.ColumnElement[bool]]:
    return [~sa.exists().where(column == _COLUMNS.id) for column in referring_columns]


def last_place(connection: sa.Connection, account_id: str, day: int) -> tuple[float, str] | None:
    """Return time and id of the last answer of a day that is in a file."""
    table = decision_files.c
    row = connection.execute(
        sa.select(table.last_at, table.last_id)
        .where(table.account_id == account_id, table.day == day)
        .order_by(table.last_at.desc(), table.last_id.desc())
        .limit(1)
    ).first()
    return None if row is None else (row.last_at, row.last_id)


def record_file(connection: sa.Connection, job: PendingJob, day: int, file: WrittenFile) -> None:
    """Name a file whose rows are in the state too."""
    connection.execute(
        sa.insert(decision_files),
        {
            "account_id": job.account_id,
            "day": day,
            "is_cleared": 0,
            **dataclasses.asdict(file),
        },
    )


def next_uncleared(connection: sa.Connection, account_id: str, day: int) -> str | None:
    """Return a file of a day whose rows may be in the state too."""
    table = decision_files.c
    return connection.scalar(
        sa.select(table.sha256)
        .where(table.account_id == account_id, table.day == day, table.is_cleared == 0)
        .order_by(table.last_at)
        .limit(1)
    )


def remove_rows(
    connection: sa.Connection,
    ids: Sequence[str],
    referring_columns: Sequence[sa.ColumnElement[str]],
) -> None:
    """Remove answers that a file has, except those that something refers to by now."""
    connection.execute(
        sa.delete(decisions).where(_COLUMNS.id.in_(ids), *_unreferred(referring_columns))
    )


def set_cleared(connection: sa.Connection, sha256: str) -> None:
    """Write that no row of a file is in the state but those that something refers to."""
    is_it = decision_files.c.sha256 == sha256
    connection.execute(sa.update(decision_files).where(is_it).values(is_cleared=1))


def forget_files(connection: sa.Connection, before: float) -> None:
    """Forget the files whose every answer is older than a time."""
    connection.execute(sa.delete(decision_files).where(decision_files.c.last_at < before))


def live_files(connection: sa.Connection) -> set[str]:
    """Return the hash of every file that has stored answers."""
    return set(connection.scalars(sa.select(decision_files.c.sha256)))


# Jobs.


def has_unfinished(connection: sa.Connection) -> bool:
    """Return whether there is a day that is to move."""
    return jobs.has_unfinished(connection, decision_archivings)


def keep_run(connection: sa.Connection, job: PendingJob, at: float, **values: Any) -> bool:
    """Write that a run got further; returns whether it still counts."""
    return jobs.set_of_run(
        connection,
        decision_archivings,
        job,
        statuses=("running",),
        updated_at=at,
        attempt=1,
        **values,
    )


def due_days(
    connection: sa.Connection, *, since: float, before: float, limit: int
) -> list[tuple[str, int]]:
    """Return accounts and days, closed before a time, that have answers and no job yet."""
    table = decision_archivings.c
    last_day = sa.select(table.account_id, sa.func.max(table.day)).group_by(table.account_id)
    last = {account_id: day for account_id, day in connection.execute(last_day)}  # noqa: C416
    due: list[tuple[str, int]] = []
    for account_id in connection.scalars(sa.select(accounts.c.id)).all():
        start = since
        if account_id in last:
            start = max(start, (last[account_id] + 1) * SECONDS_A_DAY)
        while len(due) < limit:
            at = connection.scalar(
                sa.select(_COLUMNS.created_at)
                .where(
                    _COLUMNS.account_id == account_id,
                    _COLUMNS.created_at >= start,
                    _COLUMNS.created_at < before,
                )
                .order_by(_COLUMNS.created_at)
                .limit(1)
            )
            if at is None:
                break
            day = int(at // SECONDS_A_DAY)
            start = (day + 1) * SECONDS_A_DAY
            due.append((account_id, day))
    return due


def queue_days(connection: sa.Connection, days: Sequence[tuple[str, int]], at: float) -> None:
    """Add jobs for days that have none, and queue those again that failed."""
    table = decision_archivings
    failed = table.c.status.in_(("failed", "cancelled"))
    connection.execute(
        sa.update(table)
        .where(failed)
        .values(
            status="queued",
            generation=table.c.generation + 1,
            attempt=1,
            runner=None,
            error=None,
            updated_at=at,
        )
    )
    for account_id, day in days:
        there = (table.c.account_id == account_id, table.c.day == day)
        is_account = sa.select(accounts.c.id).where(accounts.c.id == account_id)
        if connection.execute(sa.select(table.c.id).where(*there)).first() is not None:
            continue
        if connection.execute(is_account).first() is None:  # removed meanwhile
            continue
        connection.execute(
            sa.insert(table),
            {
                "id": new_id("arc"),
                "account_id": account_id,
                "day": day,
                "status": "queued",
                "generation": 1,
                "attempt": 1,
                "created_at": at,
                "updated_at": at,
            },
        )


def forget_days(connection: sa.Connection, before: float) -> None:
    """Forget the jobs of days of which nothing is stored any more."""
    table = decision_archivings.c
    is_over = table.day < int(before // SECONDS_A_DAY)
    has_ended = table.status.not_in(UNFINISHED)
    connection.execute(sa.delete(decision_archivings).where(is_over, has_ended))
