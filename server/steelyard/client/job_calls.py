"""Calls of the fine-tune routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from steelyard.client.calls import Call, write
from steelyard.client.routes import route
from steelyard.client.walking import RecordWalk
from steelyard.evaluations.wire import JobRecordPage, RecordGroup
from steelyard.families.fine_tune_wire import Job, JobEvents, JobPage
from steelyard.wire.jobs import JobSummaryPage

_Job = TypeVar("_Job")


@route("GET /v1/jobs", JobSummaryPage)
def all_page(
    *,
    kind: str | Sequence[str] | None = None,
    status: str | Sequence[str] | None = None,
    dataset_id: str | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[JobSummaryPage]:
    """List jobs of all kinds, newest first, with how far each is: ``GET /v1/jobs``.

    Only of some kinds, such as ``fine_tune`` and ``evaluation``, some states, or one dataset.
    """


@route("GET /v1/fine-tuning/jobs", JobPage)
def page(
    *,
    status: str | Sequence[str] | None = None,
    dataset_id: str | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[JobPage]:
    """List fine-tunes, newest first: ``GET /v1/fine-tuning/jobs``."""


@route("GET /v1/fine-tuning/jobs/{job_id}", Job)
def get(job_id: str) -> Call[Job]:
    """Return a fine-tune: its progress, then its outcome, gate and curve: ``GET …/jobs/{job}``."""


@route("GET /v1/fine-tuning/jobs/{job_id}/events", JobEvents)
def events(job_id: str) -> Call[JobEvents]:
    """Return the events of a fine-tune, oldest first: ``GET …/jobs/{job}/events``."""


@route("GET /v1/fine-tuning/jobs/{job_id}/records", JobRecordPage)
def records_page(
    job_id: str,
    *,
    group: RecordGroup = "adapted",
    offset: int = 0,
    limit: int | None = None,
) -> Call[JobRecordPage]:
    """Return at most 500 held-out records of an ended fine-tune: ``GET …/jobs/{job}/records``.

    ``group`` says whose answers: its model's, the base's, or the parent's.
    """


def records(job_id: str, *, group: RecordGroup = "adapted", limit: int | None = None) -> RecordWalk:
    """Return the held-out decisions of an ended fine-tune as a model of ``group`` scored them."""
    return RecordWalk(
        lambda offset, size: records_page(job_id, group=group, offset=offset, limit=size), limit
    )


def cancel(job: Call[_Job], idempotency_key: str | None = None) -> Call[_Job]:
    """Ask a job of any kind to stop, by the call that reads it: ``POST …/{job}/cancel``."""
    return write(f"{job.path}/cancel", job.answer, {}, key=idempotency_key)
