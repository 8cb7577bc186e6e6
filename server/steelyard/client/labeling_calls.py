"""Calls of the labeling routes: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.client.calls import Call, new_or_checked_key, query_of, read, remove, segment, write
from steelyard.client.dataset_calls import NDJSON
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

_SOURCES, _JOBS = "/v1/labeling/sources", "/v1/labeling/jobs"


def teachers() -> Call[TeacherList]:
    """Return the models that may label rows: ``GET /v1/labeling/teachers``."""
    return read("/v1/labeling/teachers", TeacherList)


def upload(name: str, rows: bytes, *, idempotency_key: str | None = None) -> Call[LabelingSource]:
    """Upload queries to be labelled, as JSON Lines: ``POST /v1/labeling/sources``."""
    key = new_or_checked_key(idempotency_key)
    query = query_of(name=name)
    return Call("POST", _SOURCES, LabelingSource, rows, query, key, content_type=NDJSON)


def source_page(*, page_size: int = 200, cursor: str | None = None) -> Call[LabelingSourcePage]:
    """List sources, newest first: ``GET /v1/labeling/sources``."""
    return read(_SOURCES, LabelingSourcePage, limit=page_size, cursor=cursor)


def source(source_id: str) -> Call[LabelingSource]:
    """Return a source: ``GET /v1/labeling/sources/{source}``."""
    return read(f"{_SOURCES}/{segment(source_id)}", LabelingSource)


def source_rows_page(
    source_id: str, *, offset: int | None = None, limit: int | None = None
) -> Call[SourceRowPage]:
    """Return a page of a source's queries: ``GET /v1/labeling/sources/{source}/rows``."""
    path = f"{_SOURCES}/{segment(source_id)}/rows"
    return read(path, SourceRowPage, offset=offset, limit=limit)


def delete_source(source_id: str) -> Call[DeletedSource]:
    """Delete a source and its teachers' answers: ``DELETE /v1/labeling/sources/{source}``."""
    return remove(f"{_SOURCES}/{segment(source_id)}", DeletedSource)


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
    names = [teacher_models] if isinstance(teacher_models, str) else teacher_models
    fields = {
        "source_id": source_id,
        "teacher_models": None if names is None else list(names),
        "decisions": None if decisions is None else list(decisions),
        "name": name,
        "weighting": weighting,
        "max_price_usd": max_price_usd,
    }
    return write(_JOBS, LabelingJob, fields, key=idempotency_key)


def page(
    *,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[LabelingJobPage]:
    """List labeling jobs, newest first: ``GET /v1/labeling/jobs``."""
    return read(_JOBS, LabelingJobPage, status=status, limit=page_size, cursor=cursor)


def get(job_id: str) -> Call[LabelingJob]:
    """Return a labeling job: ``GET /v1/labeling/jobs/{job}``."""
    return read(_path(job_id), LabelingJob)


def results_page(
    job_id: str, *, offset: int = 0, limit: int | None = None
) -> Call[LabelingResults]:
    """Return at most 200 rows with their teachers' answers: ``GET …/{job}/results``."""
    return read(f"{_path(job_id)}/results", LabelingResults, offset=offset, limit=limit)


def reviewed(job_id: str) -> Call[ReviewedTeachers]:
    """Return teachers' agreement with the dataset's reviewed rows: ``GET …/{job}/reviewed``."""
    return read(f"{_path(job_id)}/reviewed", ReviewedTeachers)


def cancel(job_id: str, *, idempotency_key: str | None = None) -> Call[LabelingJob]:
    """Stop a job; nothing is charged unless its labels were ready: ``POST …/{job}/cancel``."""
    return write(f"{_path(job_id)}/cancel", LabelingJob, {}, key=idempotency_key)


def discard(job_id: str, *, idempotency_key: str | None = None) -> Call[LabelingJob]:
    """Drop a job whose labels are ready, without a dataset: ``POST …/{job}/discard``."""
    return write(f"{_path(job_id)}/discard", LabelingJob, {}, key=idempotency_key)


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
    fields = {
        "row_indices": _listed(row_indices),
        "evaluation_fraction": evaluation_fraction,
        "training_indices": _listed(training_indices),
        "evaluation_indices": _listed(evaluation_indices),
    }
    return write(f"{_path(job_id)}/finalize", Dataset, fields, key=idempotency_key)


def _listed(indices: Sequence[int] | None) -> list[int] | None:
    return None if indices is None else list(indices)


def _path(job_id: str) -> str:
    return f"{_JOBS}/{segment(job_id)}"
