"""Rows of sources and jobs of labeling, and of the files of teachers' answers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from steelyard.accounts.store_owner import sweep_owned
from steelyard.job_frame.store import JobStore
from steelyard.jobs.store import PendingJob
from steelyard.labeling.tables import labeling_jobs, labeling_parts, labeling_sources
from steelyard.labeling.wire import LABELING
from steelyard.outbox.publishing import publish
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.storage.pages import OrderedPage
from steelyard.storage.rows import Rows

#: Sources, the deleted ones too.
SOURCES = Rows(labeling_sources)
#: The labeling jobs of every account.
JOBS = JobStore(
    LABELING,
    table=labeling_jobs,
    advice="look at GET /v1/labeling/jobs",
)


def page_of_sources(
    connection: Connection, account_id: str, *, limit: int, cursor: str | None
) -> OrderedPage:
    """Return a page of an account's sources, the newest first."""
    where = [labeling_sources.c.deleted_at.is_(None)]
    return SOURCES.page(connection, account_id, where=where, limit=limit, cursor=cursor)


def erase_source(connection: Connection, source_id: str, at: float) -> None:
    """Delete a source and the teachers' answers; money that its jobs hold is freed."""
    of_source = labeling_jobs.c.source_id == source_id
    for job_id in connection.execute(select(labeling_jobs.c.id).where(of_source)).scalars().all():
        JOBS.settle(connection, job_id, is_charged=False, at=at)
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


def add_part(
    connection: Connection, job: PendingJob, *, sha256: str, completed_rows: int, at: float
) -> bool:
    """Record durable answers, and how many rows are complete; returns whether the run still counts."""
    of_job = labeling_parts.c.job_id == job.id
    known = select(labeling_parts.c.number).where(of_job, labeling_parts.c.sha256 == sha256)
    if connection.execute(known).first() is not None:
        return True
    is_ours = JOBS.save(connection, job, at=at, completed_rows=completed_rows)
    if is_ours:
        last = connection.execute(select(func.max(labeling_parts.c.number)).where(of_job)).scalar()
        connection.execute(
            insert(labeling_parts),
            {"job_id": job.id, "number": 0 if last is None else last + 1, "sha256": sha256},
        )
    return is_ours


def parts_of(connection: Connection, job_id: str) -> list[str]:
    """Return the hashes of a job's parts, in the order they were written."""
    rows = connection.execute(
        select(labeling_parts.c.sha256)
        .where(labeling_parts.c.job_id == job_id)
        .order_by(labeling_parts.c.number)
    )
    return list(rows.scalars())


def finish_run(connection: Connection, job: PendingJob, *, at: float, **values: Any) -> bool:
    """Record labels that are ready for review, and charge for them; returns whether the run counted."""
    is_ours = JOBS.end(connection, job, at=at, status="review_ready", **values)
    if is_ours:
        connection.execute(delete(labeling_parts).where(labeling_parts.c.job_id == job.id))
        data = {"id": job.id, "rows": values.get("completed_rows")}
        publish(connection, job.account_id, "labeling.review_ready", job.id, data)
        JOBS.publish_success(connection, job)
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
