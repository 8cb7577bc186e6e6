"""Partitions of large evaluations: rows in ranges that any number of workers score at once.

A partition is held by the opening of the state that scores it, its runner, as a whole job is. Only
the runner writes its progress and, once, its predictions; a dead runner releases it, and another
goes on from its parts. When the last is scored the evaluation itself is a job again: its figures
are made by one worker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from steelyard.evaluations.tables import evaluation_partitions, evaluation_parts, evaluations
from steelyard.jobs import store as jobs
from steelyard.jobs.store import PendingJob
from steelyard.storage import State
from steelyard.wire.jobs import UNFINISHED

#: Rows of a partition: minutes of work of the shipped model, so that workers end at about one time
#: and no account waits longer for another's. Two groups of rows of a dataset's files.
PARTITION_ROWS = 8192

_partition = evaluation_partitions.c
_is_open = _partition.sha256.is_(None)


@dataclass(frozen=True, slots=True)
class RowShare:
    """The rows that a run scores: a range of the evaluation's, and the parts that it has of them."""

    row: sa.Row[Any]  # the evaluation's
    first: int
    rows: int
    done: int
    parts: Sequence[str]


def split(connection: sa.Connection, evaluation_id: str, n_rows: int, size: int) -> None:
    """Split an evaluation that is queued; one that fits a partition is left whole."""
    if n_rows <= size:
        return
    connection.execute(
        sa.insert(evaluation_partitions),
        [
            {
                "evaluation_id": evaluation_id,
                "number": number,
                "first": first,
                "rows": min(size, n_rows - first),
                "attempt": 1,
            }
            for number, first in enumerate(range(0, n_rows, size))
        ],
    )


def pending(connection: sa.Connection) -> list[PendingJob]:
    """Return the runs to start: whole evaluations, and of divided ones the partitions to work on.

    Those are the partitions that runs have and the first free one, or the evaluation itself when
    all of them are scored.
    """
    pending_jobs: list[PendingJob] = []
    is_open = _open_partitions(connection)
    for job in jobs.unfinished(connection, evaluations):
        partitions = is_open.get(job.id)
        if partitions is None:
            pending_jobs.append(job)
            continue
        pending_jobs += (
            dataclasses.replace(
                job, partition=partition.number, attempt=partition.attempt, runner=partition.runner
            )
            for partition in partitions
        )
    return pending_jobs


def _open_partitions(connection: sa.Connection) -> dict[str, list[sa.Row[Any]]]:
    """Return the partitions that runs have and the first free one, by evaluation."""
    unfinished = sa.select(evaluations.c.id).where(evaluations.c.status.in_(UNFINISHED))
    first_free = (
        sa.select(_partition.evaluation_id, sa.func.min(_partition.number).label("number"))
        .where(_is_open, _partition.runner.is_(None), _partition.evaluation_id.in_(unfinished))
        .group_by(_partition.evaluation_id)
    )
    free = first_free.subquery()
    of_free = sa.and_(
        _partition.evaluation_id == free.c.evaluation_id, _partition.number == free.c.number
    )
    is_running = sa.and_(
        _is_open, _partition.runner.is_not(None), _partition.evaluation_id.in_(unfinished)
    )
    by_evaluation: dict[str, list[sa.Row[Any]]] = {}
    for query in (
        sa.select(evaluation_partitions).where(is_running).order_by(_partition.number),
        sa.select(evaluation_partitions).join(free, of_free),
    ):
        for row in connection.execute(query):
            by_evaluation.setdefault(row.evaluation_id, []).append(row)
    return by_evaluation


def claim(connection: sa.Connection, job: PendingJob, at: float) -> None:
    """Write that a partition is scored."""
    taken = connection.execute(
        sa.update(evaluations)
        .where(
            evaluations.c.id == job.id,
            evaluations.c.generation == job.generation,
            evaluations.c.status.in_(("queued", "running")),
        )
        .values(status="running", updated_at=at)
    )
    if taken.rowcount:
        connection.execute(
            sa.update(evaluation_partitions)
            .where(_is_of(job), _is_open)
            .values(runner=job.runner, attempt=job.attempt)
        )


def find_share(connection: sa.Connection, job: PendingJob) -> RowShare | None:
    """Return the rows for a run to score; ``None`` when another run has them or the job has ended."""
    if job.partition is None:
        row = jobs.find_running(connection, evaluations, job)
        if row is None:
            return None
        parts = [part.sha256 for part in _parts(connection, job)]
        return RowShare(row, 0, row.evaluation_rows, row.completed_rows, parts)
    row = connection.execute(
        sa.select(evaluations).where(
            evaluations.c.id == job.id,
            evaluations.c.status == "running",
            evaluations.c.generation == job.generation,
        )
    ).first()
    partition = connection.execute(sa.select(evaluation_partitions).where(_is_mine(job))).first()
    if row is None or partition is None:
        return None
    listed = list(_parts(connection, job))
    done = sum(part.rows for part in listed)
    return RowShare(row, partition.first, partition.rows, done, [part.sha256 for part in listed])


def is_claimed(job: PendingJob) -> sa.ColumnElement[bool]:
    """Return the condition that a run still has its partition."""
    return sa.exists().where(_is_mine(job))


def note_progress(connection: sa.Connection, job: PendingJob) -> None:
    """Reset the attempts of a partition that made progress."""
    connection.execute(sa.update(evaluation_partitions).where(_is_of(job)).values(attempt=1))


def finish(connection: sa.Connection, job: PendingJob, sha256: str) -> bool:
    """Keep the predictions of a partition in place of its parts; returns whether the run counted."""
    is_running = sa.exists().where(
        evaluations.c.id == job.id,
        evaluations.c.status == "running",
        evaluations.c.generation == job.generation,
    )
    updated = connection.execute(
        sa.update(evaluation_partitions)
        .where(_is_mine(job), is_running)
        .values(sha256=sha256, runner=None)
    )
    if updated.rowcount:
        connection.execute(sa.delete(evaluation_parts).where(*_of_parts(job)))
    return updated.rowcount > 0


def finished(connection: sa.Connection, evaluation_id: str) -> list[str]:
    """Return the hashes of the predictions of an evaluation's partitions, in the order of its rows."""
    rows = connection.execute(
        sa.select(_partition.sha256)
        .where(_partition.evaluation_id == evaluation_id, _partition.sha256.is_not(None))
        .order_by(_partition.number)
    )
    return list(rows.scalars())


def let_go(connection: sa.Connection, job: PendingJob) -> bool:
    """Release a partition that stops; return whether no run has another of the evaluation."""
    connection.execute(
        sa.update(evaluation_partitions).where(_is_mine(job)).values(runner=None, attempt=1)
    )
    return not _runners(connection, job.id)


def free(connection: sa.Connection, evaluation_id: str) -> None:
    """Release every partition, so that a retry can claim them."""
    connection.execute(
        sa.update(evaluation_partitions)
        .where(_partition.evaluation_id == evaluation_id)
        .values(runner=None, attempt=1)
    )


def status_once_stopped(connection: sa.Connection, state: State, row: sa.Row[Any]) -> str:
    """Return the status of an unfinished evaluation that is to stop; living runners end it first."""
    runners = _runners(connection, row.id)
    if row.status != "queued" and any(state.is_alive(connection, runner) for runner in runners):
        return "cancelling"
    return jobs.status_once_stopped(connection, state, row)


def _runners(connection: sa.Connection, evaluation_id: str) -> list[str]:
    rows = connection.execute(
        sa.select(_partition.runner)
        .where(_partition.evaluation_id == evaluation_id, _is_open, _partition.runner.is_not(None))
        .distinct()
    )
    return list(rows.scalars())


def _parts(connection: sa.Connection, job: PendingJob) -> Iterator[sa.Row[Any]]:
    yield from connection.execute(
        sa.select(evaluation_parts).where(*_of_parts(job)).order_by(evaluation_parts.c.number)
    )


def _of_parts(job: PendingJob) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        evaluation_parts.c.evaluation_id == job.id,
        evaluation_parts.c.partition == job.partition,  # of a whole one it is null
    )


def _is_of(job: PendingJob) -> sa.ColumnElement[bool]:
    return sa.and_(_partition.evaluation_id == job.id, _partition.number == job.partition)


def _is_mine(job: PendingJob) -> sa.ColumnElement[bool]:
    return sa.and_(_is_of(job), _is_open, _partition.runner == job.runner)
