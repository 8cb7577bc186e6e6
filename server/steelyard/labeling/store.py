"""Rows of sources and jobs of labeling, and of the files of what teachers said.

A job that runs belongs to one opening of the state, its runner; only the runner writes progress, and
only while the generation is the one it claimed. The money of a job is held and settled in the
transaction in which its status changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from steelyard.datasets.store_owner import sweep_owned
from steelyard.jobs import store as jobs
from steelyard.jobs.store import UNFINISHED, PendingJob
from steelyard.labeling.tables import labeling_jobs, labeling_parts, labeling_sources
from steelyard.operations import holds
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.storage.pages import RowPage, newest_first
from steelyard.storage.tables import accounts


def insert_source(connection: Connection, values: dict[str, Any]) -> None:
    """Add a source."""
    connection.execute(insert(labeling_sources), values)


def find_source(connection: Connection, account_id: str, source_id: str) -> Row[Any] | None:
    """Return a source of an account, a deleted one too."""
    return connection.execute(
        select(labeling_sources).where(
            labeling_sources.c.account_id == account_id, labeling_sources.c.id == source_id
        )
    ).first()


def page_of_sources(
    connection: Connection, account_id: str, *, limit: int, cursor: str | None
) -> RowPage:
    """Return a page of an account's sources, the newest first."""
    return newest_first(
        connection,
        labeling_sources,
        owned=labeling_sources.c.account_id == account_id,
        where=[labeling_sources.c.deleted_at.is_(None)],
        limit=limit,
        cursor=cursor,
    )


def erase_source(connection: Connection, source_id: str, at: float) -> None:
    """Delete a source and what teachers said of it; money that its jobs hold is freed."""
    of_source = labeling_jobs.c.source_id == source_id
    for row in connection.execute(select(labeling_jobs).where(of_source)).all():
        if row.charge == "reserved":
            _settle(connection, row, amount_nano=0, at=at)
    erased = select(labeling_jobs.c.id).where(of_source)
    connection.execute(delete(labeling_parts).where(labeling_parts.c.job_id.in_(erased)))
    connection.execute(
        update(labeling_jobs)
        .where(of_source)
        .values(
            status="deleted",
            updated_at=at,
            runner=None,
            answers_sha256=None,
            decisions=None,
            summary=None,
        )
    )
    connection.execute(
        update(labeling_sources)
        .where(labeling_sources.c.id == source_id)
        .values(name="", receipt=b"", sha256="", deleted_at=at)
    )


def lock_account(connection: Connection, account_id: str) -> None:
    """Keep other writers of the account's jobs out until the transaction ends."""
    connection.execute(select(accounts.c.id).where(accounts.c.id == account_id).with_for_update())


def insert_job(
    connection: Connection, values: dict[str, Any], *, key_id: str | None, route: str
) -> None:
    """Add a queued job, and hold its price."""
    price_nano = values["price_nano"]
    counts = ("completed_rows", "valid_rows", "agreement_rows", "error_rows")
    connection.execute(
        insert(labeling_jobs),
        {
            "status": "queued",
            "generation": 1,
            "attempt": 1,
            **dict.fromkeys(counts, 0),
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
            what="labeling",
            amount_nano=price_nano,
            at=values["created_at"],
        )


def find_job(connection: Connection, job_id: str, account_id: str | None = None) -> Row[Any] | None:
    """Return a job; ``None`` when there is none, or it is not the account's."""
    wanted = [labeling_jobs.c.id == job_id]
    if account_id is not None:
        wanted.append(labeling_jobs.c.account_id == account_id)
    return connection.execute(select(labeling_jobs).where(*wanted)).first()


def page_of_jobs(
    connection: Connection,
    account_id: str,
    *,
    statuses: Sequence[str],
    limit: int,
    cursor: str | None,
) -> RowPage:
    """Return a page of an account's jobs, the newest first."""
    return newest_first(
        connection,
        labeling_jobs,
        owned=labeling_jobs.c.account_id == account_id,
        where=[labeling_jobs.c.status.in_(statuses)] if statuses else (),
        limit=limit,
        cursor=cursor,
    )


def count_backlog(connection: Connection, account_id: str) -> tuple[int, int]:
    """Count the jobs that have not ended: in all, and of one account."""
    of_account = func.count().filter(labeling_jobs.c.account_id == account_id)
    found = connection.execute(
        select(func.count(), of_account).where(labeling_jobs.c.status.in_(UNFINISHED))
    ).one()
    return found[0], found[1]


def has_unfinished(connection: Connection) -> bool:
    """Return whether there is a job that has not ended."""
    return jobs.has_unfinished(connection, labeling_jobs)


def move(
    connection: Connection,
    job_id: str,
    status: str,
    *,
    at: float,
    only_if: Sequence[str],
    **values: Any,
) -> bool:
    """Move a job to another status; one that ends without labels frees the money that it holds."""
    moved = connection.execute(
        update(labeling_jobs)
        .where(labeling_jobs.c.id == job_id, labeling_jobs.c.status.in_(only_if))
        .values(status=status, updated_at=at, **values)
    )
    if moved.rowcount and status in {"failed", "cancelled"}:
        row = find_job(connection, job_id)
        if row is not None and row.charge == "reserved":
            _settle(connection, row, amount_nano=0, at=at)
    return moved.rowcount > 0


def begin_run(connection: Connection, job: PendingJob, *, at: float) -> bool:
    """Take a queued or interrupted job; returns whether it was there to be run."""
    return jobs.set_runner(connection, labeling_jobs, job, status="running", updated_at=at)


def add_part(
    connection: Connection, job: PendingJob, *, sha256: str, completed_rows: int, at: float
) -> bool:
    """Record answers that are durable, and how many rows are complete with them.

    Returns whether they count: not when another process took the job over, or it has ended.
    """
    of_job = labeling_parts.c.job_id == job.id
    known = select(labeling_parts.c.number).where(of_job, labeling_parts.c.sha256 == sha256)
    if connection.execute(known).first() is not None:
        return True
    is_ours = jobs.set_of_run(
        connection,
        labeling_jobs,
        job,
        statuses=("running", "cancelling"),
        completed_rows=completed_rows,
        updated_at=at,
        attempt=1,
    )
    if is_ours:
        last = connection.execute(select(func.max(labeling_parts.c.number)).where(of_job)).scalar()
        connection.execute(
            insert(labeling_parts),
            {"job_id": job.id, "number": 0 if last is None else last + 1, "sha256": sha256},
        )
    return is_ours


def parts_of(connection: Connection, job_id: str) -> list[str]:
    """Return the hashes of a job's parts, in the order they were written."""
    found = connection.execute(
        select(labeling_parts.c.sha256)
        .where(labeling_parts.c.job_id == job_id)
        .order_by(labeling_parts.c.number)
    )
    return list(found.scalars())


def finish_run(connection: Connection, job: PendingJob, *, at: float, **values: Any) -> bool:
    """Record labels that are ready for review, and charge for them.

    Returns whether the run still counted.
    """
    is_ours = jobs.set_of_run(
        connection,
        labeling_jobs,
        job,
        statuses=("running",),
        status="review_ready",
        updated_at=at,
        **values,
    )
    row = find_job(connection, job.id)
    if is_ours and row is not None:
        connection.execute(delete(labeling_parts).where(labeling_parts.c.job_id == job.id))
        if row.charge == "reserved":
            _settle(connection, row, amount_nano=row.price_nano, at=at)
    return is_ours


def sweep_files(state: State, store: FrameStore) -> None:
    """Remove the files that no source and no job refers to; it blocks."""
    sweep_owned(state, store, live_files)


def live_files(connection: Connection) -> set[str]:
    """Return the hash of every file that a source or a job refers to."""
    sources = select(labeling_sources.c.sha256).where(labeling_sources.c.deleted_at.is_(None))
    answers = select(labeling_jobs.c.answers_sha256).where(
        labeling_jobs.c.answers_sha256.is_not(None)
    )
    parts = select(labeling_parts.c.sha256)
    return {
        sha256
        for named in (sources, answers, parts)
        for sha256 in connection.execute(named).scalars()
    }


def _settle(connection: Connection, row: Row[Any], *, amount_nano: int, at: float) -> None:
    """Charge an amount of what a job holds, which may be nothing, and free the rest."""
    holds.settle(
        connection,
        _operation_id(row.id),
        reserved_nano=row.price_nano,
        amount_nano=amount_nano,
        at=at,
    )
    connection.execute(
        update(labeling_jobs)
        .where(labeling_jobs.c.id == row.id)
        .values(charge="charged" if amount_nano else "released")
    )


def _operation_id(job_id: str) -> str:
    return f"op_{job_id}"
