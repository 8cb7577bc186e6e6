"""The columns that every table of jobs has: where a job is, who runs it, how often it was begun.

A job that runs belongs to one opening of the state, its runner. Only the runner writes progress and
results, and only while the generation is the one that it claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Table, select, update

from steelyard.outbox.names import Event
from steelyard.outbox.publishing import publish
from steelyard.storage import State
from steelyard.wire.jobs import UNFINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingJob:
    """A job that has not ended."""

    id: str
    account_id: str
    status: str
    created_at: float
    generation: int  # from 1, one more each time that it was taken up again on request
    attempt: int  # how often the generation was begun without getting further
    runner: str | None = None  # the opening of the state that runs it, or ran it until it died
    partition: int | None = None  # of a job that several processes run, each a partition at a time

    @property
    def key(self) -> tuple[str, int | None]:
        """The unit that one process runs at a time: a job, or a partition of one."""
        return self.id, self.partition


_COLUMNS = ("id", "account_id", "status", "created_at", "generation", "attempt", "runner")


def unfinished(
    connection: Connection, table: Table, *where: ColumnElement[bool]
) -> list[PendingJob]:
    """Return every job that has not ended, the oldest first; of some where that is said."""
    rows = connection.execute(
        select(*(table.c[name] for name in _COLUMNS))
        .where(table.c.status.in_(UNFINISHED), *where)
        .order_by(table.c.created_at, table.c.id)
    )
    return [PendingJob(**row) for row in rows.mappings()]


def has_unfinished(connection: Connection, table: Table, dataset_id: str | None = None) -> bool:
    """Return whether there is a job that has not ended, on any dataset or on one."""
    where: list[ColumnElement[bool]] = [table.c.status.in_(UNFINISHED)]
    if dataset_id is not None:
        where.append(table.c.dataset_id == dataset_id)
    return connection.execute(select(table.c.id).where(*where).limit(1)).first() is not None


def find_running(connection: Connection, table: Table, job: PendingJob) -> Row[Any] | None:
    """Return the row of a job that its runner still has; ``None`` where it was taken or ended."""
    row = connection.execute(select(table).where(table.c.id == job.id)).first()
    mine = ("running", job.generation, job.runner)
    if row is None or (row.status, row.generation, row.runner) != mine:
        return None
    return row


def status_once_stopped(connection: Connection, state: State, row: Row[Any]) -> str:
    """Return the status of an unfinished job that is to stop: a living runner ends it first."""
    is_run = row.status != "queued" and row.runner is not None
    runs = is_run and state.is_alive(connection, row.runner)
    return "cancelling" if runs else "cancelled"


def set_runner(connection: Connection, table: Table, job: PendingJob, **values: Any) -> bool:
    """Write who runs a job and for which time; returns whether it was there to be run."""
    taken = connection.execute(
        update(table)
        .where(
            table.c.id == job.id,
            table.c.generation == job.generation,
            table.c.status.in_(("queued", "running")),
        )
        .values(runner=job.runner, attempt=job.attempt, **values)
    )
    return taken.rowcount > 0


def move(
    connection: Connection,
    table: Table,
    job_id: str,
    status: str,
    *,
    at: float,
    only_if: Sequence[str],
    kind: str | None = None,
    generation: int | None = None,
    **values: Any,
) -> bool:
    """Move a job to another status, and write columns; returns whether it was in one of some.

    Where its generation is named, one that was taken up again stays as it is. Where its kind is
    named, that it failed is published.
    """
    where = [table.c.id == job_id, table.c.status.in_(only_if)]
    if generation is not None:
        where.append(table.c.generation == generation)
    moved = connection.execute(
        update(table).where(*where).values(status=status, updated_at=at, **values)
    )
    if moved.rowcount > 0 and status == "failed" and kind is not None:
        publish_failure(connection, table, kind, job_id, values.get("error"))
    return moved.rowcount > 0


def set_of_run(
    connection: Connection,
    table: Table,
    job: PendingJob,
    *,
    statuses: Sequence[str] | None = None,
    **values: Any,
) -> bool:
    """Write columns of a job, in any status or in some; returns whether its runner still has it."""
    where = [
        table.c.id == job.id,
        table.c.generation == job.generation,
        table.c.runner == job.runner,
    ]
    if statuses is not None:
        where.append(table.c.status.in_(statuses))
    return connection.execute(update(table).where(*where).values(**values)).rowcount > 0


def publish_end(
    connection: Connection,
    kind: str,
    job_id: str,
    account_id: str,
    status: Literal["succeeded", "failed"],
    **details: Any,
) -> None:
    """Publish that a job ended, in the transaction that ends it."""
    data = {"id": job_id, "kind": kind, "status": status, **details}
    event: Event = "job.succeeded" if status == "succeeded" else "job.failed"
    publish(connection, account_id, event, job_id, data)


def publish_failure(
    connection: Connection, table: Table, kind: str, job_id: str, error: bytes | None
) -> None:
    """Publish that a job of a table failed; ``error`` is JSON."""
    of_job = select(table.c.account_id).where(table.c.id == job_id)
    failure = None if error is None else msgspec.json.decode(error)
    account_id = connection.execute(of_job).scalar_one()
    publish_end(connection, kind, job_id, account_id, "failed", error=failure)
