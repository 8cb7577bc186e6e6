"""Rows of prompt-tuning jobs.

A job that runs belongs to one opening of the state, its runner; only the runner writes progress, and
only while the generation is the one it claimed. The money of a job is held and settled in the
transaction in which its status changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from steelyard.jobs import store as jobs
from steelyard.jobs.store import UNFINISHED, PendingJob
from steelyard.operations import held_jobs
from steelyard.prompt_tuning.tables import prompt_tunings
from steelyard.storage.pages import RowPage, newest_first


def find_job(connection: Connection, job_id: str, account_id: str | None = None) -> Row[Any] | None:
    """Return a job; ``None`` when there is none, or it is not the account's."""
    return held_jobs.find_job(connection, prompt_tunings, job_id, account_id)


def page_of_jobs(
    connection: Connection,
    account_id: str,
    *,
    statuses: Sequence[str],
    dataset_id: str | None,
    limit: int,
    cursor: str | None,
) -> RowPage:
    """Return a page of an account's jobs, the newest first."""
    where: list[ColumnElement[bool]] = []
    if statuses:
        where.append(prompt_tunings.c.status.in_(statuses))
    if dataset_id is not None:
        where.append(prompt_tunings.c.dataset_id == dataset_id)
    return newest_first(
        connection,
        prompt_tunings,
        owned=prompt_tunings.c.account_id == account_id,
        where=where,
        limit=limit,
        cursor=cursor,
    )


def has_unfinished(connection: Connection, dataset_id: str | None = None) -> bool:
    """Return whether there is a job that has not ended, on any dataset or on one."""
    return jobs.has_unfinished(connection, prompt_tunings, dataset_id)


def unfinished_of_account(connection: Connection, account_id: str) -> list[tuple[str, str]]:
    """Return the jobs of an account that have not ended, and the model of each."""
    found = connection.execute(
        select(prompt_tunings.c.id, prompt_tunings.c.model_id).where(
            prompt_tunings.c.account_id == account_id, prompt_tunings.c.status.in_(UNFINISHED)
        )
    )
    return [(row.id, row.model_id) for row in found]


def move(
    connection: Connection,
    job_id: str,
    status: str,
    *,
    at: float,
    only_if: Sequence[str],
    **values: Any,
) -> bool:
    """Move a job to another status; one that fails or is cancelled frees the money that it holds."""
    return held_jobs.move(
        connection,
        prompt_tunings,
        job_id,
        status,
        at=at,
        only_if=only_if,
        kind="prompt_tuning",
        **values,
    )


def save_search(connection: Connection, job: PendingJob, search: bytes, *, at: float) -> bool:
    """Write how far the search is; returns whether the run still counted."""
    return jobs.set_of_run(
        connection,
        prompt_tunings,
        job,
        statuses=("running", "cancelling"),
        search=search,
        updated_at=at,
        attempt=1,
    )


def finish_run(
    connection: Connection, job: PendingJob, result: bytes, *, is_charged: bool, at: float
) -> bool:
    """Write what a job proved, and charge for it or free its money.

    Returns whether the run still counted.
    """
    is_ours = jobs.set_of_run(
        connection,
        prompt_tunings,
        job,
        statuses=("running",),
        status="succeeded",
        result=result,
        updated_at=at,
    )
    if is_ours:
        held_jobs.settle(connection, prompt_tunings, job.id, is_charged=is_charged, at=at)
        jobs.publish_end(connection, "prompt_tuning", job.id, job.account_id, "succeeded")
    return is_ours


def is_rerun(connection: Connection, row: Row[Any]) -> bool:
    """Whether the same was tuned before: decision, rows, model and effort."""
    table = prompt_tunings.c
    earlier = select(table.id).where(
        table.account_id == row.account_id,
        table.id != row.id,
        table.dataset_id == row.dataset_id,
        table.dataset_version == row.dataset_version,
        table.decision == row.decision,
        table.model_sha256 == row.model_sha256,
        table.effort == row.effort,
        table.status == "succeeded",
    )
    return connection.execute(earlier.limit(1)).first() is not None


def succeeded_on(connection: Connection, dataset_id: str) -> list[Row[Any]]:
    """Return the jobs of a dataset whose label issues nobody dismissed, the newest first."""
    found = connection.execute(
        select(prompt_tunings)
        .where(
            prompt_tunings.c.dataset_id == dataset_id,
            prompt_tunings.c.status == "succeeded",
            prompt_tunings.c.dismissed_at.is_(None),
        )
        .order_by(prompt_tunings.c.created_at.desc(), prompt_tunings.c.id.desc())
    )
    return list(found)
