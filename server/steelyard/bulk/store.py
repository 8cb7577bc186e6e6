"""Rows of bulk runs and of their partitions.

A partition is held by the opening of the state that answers it, its runner, as a whole job is. Only
the runner writes its answers, and only once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, select, update

from steelyard.accounts.store_owner import sweep_owned
from steelyard.bulk.tables import bulk_partitions, bulk_runs
from steelyard.jobs.store import PendingJob
from steelyard.model_use import ModelUse
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.filling import filled

#: Seconds after which an idle run is given up.
STORED_S = 7 * 24 * 3600.0

_parts = bulk_partitions.c
_is_open = and_(_parts.output_sha256.is_(None), bulk_runs.c.error.is_(None))


def begin(
    connection: Connection, run_id: str, account_id: str, request: bytes, *, at: float
) -> set[int]:
    """Add a run, or continue one that exists; return the numbers of its partitions."""
    going_on = {"updated_at": at, "error": None}
    there = connection.execute(update(bulk_runs).where(bulk_runs.c.id == run_id).values(**going_on))
    if not there.rowcount:
        values = {"id": run_id, "account_id": account_id, "asked": request, "created_at": at}
        connection.execute(insert(bulk_runs).values(**values, **going_on))
    connection.execute(update(bulk_partitions).where(_parts.run_id == run_id).values(attempt=1))
    numbers = select(_parts.number).where(_parts.run_id == run_id)
    return set(connection.execute(numbers).scalars())


def add(connection: Connection, run_id: str, number: int, input_sha256: str, *, at: float) -> None:
    """Add a partition that waits for its answers."""
    values = {"run_id": run_id, "number": number, "input_sha256": input_sha256, "attempt": 1}
    connection.execute(insert(bulk_partitions).values(**values))
    touch(connection, run_id, at=at)


def touch(connection: Connection, run_id: str, *, at: float) -> None:
    """Note that a caller waits for a run."""
    connection.execute(update(bulk_runs).where(bulk_runs.c.id == run_id).values(updated_at=at))


def find_run(connection: Connection, run_id: str) -> Row[Any] | None:
    """Return a run; ``None`` where it was given up."""
    return connection.execute(select(bulk_runs).where(bulk_runs.c.id == run_id)).first()


def answered(connection: Connection, run_id: str) -> dict[int, str]:
    """Return the files of the partitions that were answered, by number."""
    rows = connection.execute(
        select(_parts.number, _parts.output_sha256)
        .where(_parts.run_id == run_id, _parts.output_sha256.is_not(None))
        .order_by(_parts.number)
    )
    return {row.number: row.output_sha256 for row in rows}


def remove(connection: Connection, run_id: str, numbers: Collection[int], *, at: float) -> None:
    """Remove partitions that were fetched."""
    connection.execute(
        delete(bulk_partitions).where(_parts.run_id == run_id, _parts.number.in_(numbers))
    )
    touch(connection, run_id, at=at)


def end(connection: Connection, run_id: str) -> None:
    """Remove a run and its remaining rows."""
    connection.execute(delete(bulk_partitions).where(_parts.run_id == run_id))
    connection.execute(delete(bulk_runs).where(bulk_runs.c.id == run_id))


def pending(connection: Connection) -> list[PendingJob]:
    """Return the jobs a worker may take: the leased partitions, and the next of each run."""
    of_run = bulk_runs.c.id == _parts.run_id
    first = (
        select(_parts.run_id, func.min(_parts.number).label("number"))
        .join(bulk_runs, of_run)
        .where(_is_open, _parts.runner.is_(None))
        .group_by(_parts.run_id)
        .subquery()
    )
    is_first = and_(_parts.run_id == first.c.run_id, _parts.number == first.c.number)
    every = select(bulk_runs.c.account_id, bulk_runs.c.created_at, bulk_partitions).join(
        bulk_runs, of_run
    )
    return [
        filled(
            PendingJob,
            row,
            id=row.run_id,
            status="queued" if row.runner is None else "running",
            generation=1,
            partition=row.number,
        )
        for query in (
            every.where(_is_open, _parts.runner.is_not(None)),
            every.join(first, is_first),
        )
        for row in connection.execute(query)
    ]


def has_unfinished(connection: Connection) -> bool:
    """Return whether rows wait for an answer."""
    return bool(pending(connection))


def uses(connection: Connection, account_id: str) -> list[ModelUse]:
    """Return the models of an account's files with rows that wait for an answer."""
    of_run = bulk_runs.c.id == _parts.run_id
    runs = connection.execute(
        select(bulk_runs)
        .join(bulk_partitions, of_run)
        .where(_is_open, bulk_runs.c.account_id == account_id)
        .distinct()
    )
    # A family that is named answers by the model that it then serves; a number is that model.
    named = ((run.id, run.model_id or msgspec.json.decode(run.asked).get("model")) for run in runs)
    return [ModelUse(id=run_id, adapter=model) for run_id, model in named if model is not None]


def claim(connection: Connection, job: PendingJob) -> None:
    """Write that a partition is answered."""
    connection.execute(
        update(bulk_partitions)
        .where(_is_of(job), _parts.output_sha256.is_(None))
        .values(runner=job.runner, attempt=job.attempt)
    )


def find_mine(connection: Connection, job: PendingJob) -> Row[Any] | None:
    """Return a run's leased partition with its request; ``None`` where the lease was lost."""
    return connection.execute(
        select(bulk_partitions, bulk_runs)
        .join(bulk_runs, bulk_runs.c.id == _parts.run_id)
        .where(_is_mine(job), _is_open)
    ).first()


def fix_model(connection: Connection, run_id: str, model_id: str, sha256: str) -> tuple[str, str]:
    """Return which model answers a run: the one given, unless another partition began before."""
    is_run = bulk_runs.c.id == run_id
    connection.execute(
        update(bulk_runs)
        .where(is_run, bulk_runs.c.model_id.is_(None))
        .values(model_id=model_id, model_sha256=sha256)
    )
    fixed = select(bulk_runs.c.model_id, bulk_runs.c.model_sha256).where(is_run)
    row = connection.execute(fixed).one()
    return row.model_id, row.model_sha256


def finish(connection: Connection, job: PendingJob, output_sha256: str) -> bool:
    """Keep the answers of a partition; returns whether the run still counted."""
    updated = connection.execute(
        update(bulk_partitions)
        .where(_is_mine(job), _parts.output_sha256.is_(None))
        .values(output_sha256=output_sha256, runner=None)
    )
    return updated.rowcount > 0


def fail(connection: Connection, job: PendingJob, error: bytes) -> None:
    """Note why a run cannot be answered, and let go of the partition."""
    connection.execute(update(bulk_partitions).where(_is_mine(job)).values(runner=None))
    connection.execute(
        update(bulk_runs)
        .where(bulk_runs.c.id == job.id, bulk_runs.c.error.is_(None))
        .values(error=error)
    )


def live_files(connection: Connection) -> set[str]:
    """Return the hash of every file that a partition has."""
    live: set[str] = set()
    for column in (_parts.input_sha256, _parts.output_sha256):
        live.update(connection.execute(select(column).where(column.is_not(None))).scalars())
    return live


def sweep(state: State, store: FrameStore, now: Callable[[], float]) -> None:
    """Remove runs that were given up, and files that no partition has; it blocks."""
    state.write_now(functools.partial(_give_up, before=now() - STORED_S))
    sweep_owned(state, store, live_files)


def _give_up(connection: Connection, before: float) -> None:
    old = select(bulk_runs.c.id).where(bulk_runs.c.updated_at < before)
    for run_id in list(connection.execute(old).scalars()):
        end(connection, run_id)


def _is_of(job: PendingJob) -> ColumnElement[bool]:
    return and_(_parts.run_id == job.id, _parts.number == job.partition)


def _is_mine(job: PendingJob) -> ColumnElement[bool]:
    return and_(_is_of(job), _parts.runner == job.runner)
