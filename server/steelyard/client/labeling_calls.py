"""Calls of the labeling routes: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.client.calls import Call, new_or_checked_key, query_of
from steelyard.client.dataset_calls import NDJSON
from steelyard.client.routes import listed, route
from steelyard.datasets.wire import Dataset
from steelyard.labeling.judging import Weighting
from steelyard.labeling.wire import (
    DeletedSource,
    LabelingJob,
    LabelingJobPage,
    LabelingResults,
    LabelingSource,
    LabelingSourcePage,
    ReviewedTeachers,
    SourceRowPage,
    TeacherList,
)


@route("GET /v1/labeling/teachers", TeacherList)
def teachers() -> Call[TeacherList]:
    """Return the models that may label rows: ``GET /v1/labeling/teachers``."""


def upload(name: str, rows: bytes, *, idempotency_key: str | None = None) -> Call[LabelingSource]:
    """Upload queries to be labelled, as JSON Lines: ``POST /v1/labeling/sources``."""
    key = new_or_checked_key(idempotency_key)
    query = query_of(name=name)
    return Call(
        "POST", "/v1/labeling/sources", LabelingSource, rows, query, key, content_type=NDJSON
    )


@route("GET /v1/labeling/sources", LabelingSourcePage)
def source_page(*, page_size: int = 200, cursor: str | None = None) -> Call[LabelingSourcePage]:
    """List sources, newest first: ``GET /v1/labeling/sources``."""


@route("GET /v1/labeling/sources/{source_id}", LabelingSource)
def source(source_id: str) -> Call[LabelingSource]:
    """Return a source: ``GET /v1/labeling/sources/{source}``."""


@route("GET /v1/labeling/sources/{source_id}/rows", SourceRowPage)
def source_rows_page(
    source_id: str, *, offset: int | None = None, limit: int | None = None
) -> Call[SourceRowPage]:
    """Return a page of a source's queries: ``GET /v1/labeling/sources/{source}/rows``."""


@route("DELETE /v1/labeling/sources/{source_id}", DeletedSource)
def delete_source(source_id: str) -> Call[DeletedSource]:
    """Delete a source and its teachers' answers: ``DELETE /v1/labeling/sources/{source}``."""


def _named(teacher_models: str | Sequence[str] | None) -> list[str] | None:
    return [teacher_models] if isinstance(teacher_models, str) else listed(teacher_models)


@route("POST /v1/labeling/jobs", LabelingJob, teacher_models=_named, decisions=listed)
def create(
    source_id: str,
    *,
    teacher_models: str | Sequence[str] | None = None,
    decisions: Sequence[Mapping[str, Any]] | None = None,
    name: str | None = None,
    weighting: Weighting = "votes",
    max_price_usd: str | None = None,
    idempotency_key: str | None = None,
) -> Call[LabelingJob]:
    """Ask teachers to label a source: ``POST /v1/labeling/jobs``.

    The server's default teachers label when none are named. ``decisions`` are for the rows that
    carry none; ``name``, of the job and its dataset, is the source's when left out. Targets are the
    mean of labels, or of calibrated probabilities. The call is refused, and nothing held, when the
    labeling is dearer than ``max_price_usd``.
    """


@route("GET /v1/labeling/jobs", LabelingJobPage)
def page(
    *,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[LabelingJobPage]:
    """List labeling jobs, newest first: ``GET /v1/labeling/jobs``."""


@route("GET /v1/labeling/jobs/{job_id}", LabelingJob)
def get(job_id: str) -> Call[LabelingJob]:
    """Return a labeling job: ``GET /v1/labeling/jobs/{job}``."""


@route("GET /v1/labeling/jobs/{job_id}/results", LabelingResults)
def results_page(
    job_id: str, *, offset: int = 0, limit: int | None = None
) -> Call[LabelingResults]:
    """Return at most 200 rows with their teachers' answers: ``GET …/{job}/results``."""


@route("GET /v1/labeling/jobs/{job_id}/reviewed", ReviewedTeachers)
def reviewed(job_id: str) -> Call[ReviewedTeachers]:
    """Return teachers' agreement with the dataset's reviewed rows: ``GET …/{job}/reviewed``."""


@route("POST /v1/labeling/jobs/{job_id}/cancel", LabelingJob)
def cancel(job_id: str, *, idempotency_key: str | None = None) -> Call[LabelingJob]:
    """Stop a job; nothing is charged unless its labels were ready: ``POST …/{job}/cancel``."""


@route("POST /v1/labeling/jobs/{job_id}/discard", LabelingJob)
def discard(job_id: str, *, idempotency_key: str | None = None) -> Call[LabelingJob]:
    """Drop a job whose labels are ready, without a dataset: ``POST …/{job}/discard``."""


@route(
    "POST /v1/labeling/jobs/{job_id}/finalize",
    Dataset,
    row_indices=listed,
    training_indices=listed,
    evaluation_indices=listed,
)
def finalize(
    job_id: str,
    row_indices: Sequence[int] | None = None,
    *,
    evaluation_fraction: float | None = None,
    training_indices: Sequence[int] | None = None,
    evaluation_indices: Sequence[int] | None = None,
    idempotency_key: str | None = None,
) -> Call[Dataset]:
    """Make a dataset of accepted rows: ``POST /v1/labeling/jobs/{job}/finalize``.

    The same selection again is the same dataset. Rows are named by their ``index``:
    ``row_indices``, of which the share ``evaluation_fraction`` of contexts, 0.1 to 1, is put aside
    (0.2 when left out), or the two sides by name.
    """
