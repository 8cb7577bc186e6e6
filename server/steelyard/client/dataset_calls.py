"""Calls of the dataset routes: one function a route."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from steelyard.client.calls import (
    Call,
    new_or_checked_key,
    query_of,
    segment,
)
from steelyard.client.routes import if_true, listed, route
from steelyard.datasets.from_feedback_wire import DatasetFromFeedback
from steelyard.datasets.searches import FoundSimilar
from steelyard.datasets.wire import (
    Dataset,
    DatasetCheck,
    DatasetPage,
    DatasetVersions,
    DeletedDataset,
    LabelsToCheck,
    Partition,
    RowPage,
)
from steelyard.wire.origins import Origin
from steelyard.wire.queries import ExportFormat

NDJSON: Final = "application/x-ndjson"
CSV: Final = "text/csv"


class FoundRowsAnswer(RowPage, frozen=True, kw_only=True):
    """The rows that a search found, with their places in the dataset and, when asked, counts."""

    indexes: list[int]
    facets: Mapping[str, Any] | None = None


def _side(partition: Partition) -> Partition | None:
    return None if partition == "all" else partition


def create_dataset(
    name: str,
    parts: Mapping[str, bytes],
    *,
    evaluation_fraction: float | None = None,
    idempotency_key: str | None = None,
) -> Call[Dataset]:
    """Make a dataset: ``POST /v1/datasets``.

    ``parts`` are ``examples`` alone, or ``training`` and ``evaluation`` or one of them, to JSON
    Lines. Of the contexts of ``examples`` the share ``evaluation_fraction``, 0.1 to 1, is put
    aside; 0.2 when left out.
    """
    fields = query_of(name=name, evaluation_fraction=evaluation_fraction)
    return _upload("/v1/datasets", fields, parts, Dataset, new_or_checked_key(idempotency_key))


def add_rows(
    dataset_id: str,
    parts: Mapping[str, bytes],
    *,
    evaluation_fraction: float | None = None,
    content_type: Literal["application/x-ndjson", "text/csv"] = "application/x-ndjson",
    idempotency_key: str | None = None,
) -> Call[Dataset]:
    """Add rows as the next version: ``POST /v1/datasets/{dataset}/versions``.

    As for ``create_dataset``; ``text/csv`` is a table, which is ``examples`` alone.
    """
    fields = query_of(evaluation_fraction=evaluation_fraction)
    path = f"/v1/datasets/{segment(dataset_id)}/versions"
    key = new_or_checked_key(idempotency_key)
    return _upload(path, fields, parts, Dataset, key, content_type)


@route(
    "POST /v1/datasets/from-feedback", DatasetFromFeedback, decisions=listed, decision_ids=listed
)
def from_feedback(
    *,
    name: str | None = None,
    dataset_id: str | None = None,
    dataset_version: int | None = None,
    since: float | None = None,
    until: float | None = None,
    model: str | None = None,
    named: str | None = None,
    decisions: Sequence[str] | None = None,
    decision_ids: Sequence[str] | None = None,
    by: Origin | None = None,
    evaluation_fraction: float | None = None,
    idempotency_key: str | None = None,
) -> Call[DatasetFromFeedback]:
    """Make rows of stored decisions that got feedback: ``POST /v1/datasets/from-feedback``.

    Parameters
    ----------
    name, dataset_id
        Of a new dataset, or the one to add to, which takes each stored decision once.
    dataset_version
        Refuse unless this is its newest version.
    since, until
        Decisions answered at or after the one and before the other, in Unix seconds.
    model
        Decisions that this model answered: a base model, a family or a number.
    named
        Those of a named decision, or of a version of it: ``support_triage@7``.
    decisions, decision_ids
        Ids of the decisions to take, all that have feedback when left out; and of stored decisions,
        at most 500.
    by
        Only feedback of this origin; all but that of clicks and models when left out.
    evaluation_fraction
        Share of the new contexts put aside: 0.1 to 1; 0.2 when left out.
    """


def check_rows(parts: Mapping[str, bytes]) -> Call[DatasetCheck]:
    """Return the problems of rows, and store nothing: ``POST /v1/datasets/check``."""
    return _upload("/v1/datasets/check", (), parts, DatasetCheck, None)


@route("GET /v1/datasets", DatasetPage, archived=if_true)
def list_datasets(
    *, archived: bool = False, limit: int | None = None, cursor: str | None = None
) -> Call[DatasetPage]:
    """Return a page of datasets, or of the archived, last used first: ``GET /v1/datasets``."""


@route("GET /v1/datasets/{dataset_id}", Dataset)
def get_dataset(dataset_id: str) -> Call[Dataset]:
    """Return one dataset: ``GET /v1/datasets/{dataset}``."""


@route("PATCH /v1/datasets/{dataset_id}", Dataset)
def rename_dataset(dataset_id: str, name: str) -> Call[Dataset]:
    """Rename a dataset: ``PATCH /v1/datasets/{dataset}``."""


@route("DELETE /v1/datasets/{dataset_id}", DeletedDataset)
def delete_dataset(dataset_id: str) -> Call[DeletedDataset]:
    """Delete a dataset with all of its rows, for good: ``DELETE /v1/datasets/{dataset}``."""


@route("POST /v1/datasets/{dataset_id}/archive", Dataset)
def archive_dataset(dataset_id: str) -> Call[Dataset]:
    """Put a dataset into the archive: ``POST /v1/datasets/{dataset}/archive``."""


@route("POST /v1/datasets/{dataset_id}/restore", Dataset)
def restore_dataset(dataset_id: str) -> Call[Dataset]:
    """Take a dataset out of the archive: ``POST /v1/datasets/{dataset}/restore``."""


@route("GET /v1/datasets/{dataset_id}/versions", DatasetVersions)
def list_versions(dataset_id: str) -> Call[DatasetVersions]:
    """Return every version, newest first: ``GET /v1/datasets/{dataset}/versions``."""


@route("GET /v1/datasets/{dataset_id}/labels-to-check", LabelsToCheck)
def list_labels_to_check(dataset_id: str) -> Call[LabelsToCheck]:
    """Return the labels that prompt tuning doubted: ``GET …/labels-to-check``."""


@route("GET /v1/datasets/{dataset_id}/rows", RowPage, partition=_side)
def page_rows(
    dataset_id: str,
    *,
    offset: int = 0,
    limit: int = 100,
    partition: Partition = "all",
    version: int | None = None,
) -> Call[RowPage]:
    """Return at most 500 rows of a version, the latest when left out: ``GET …/{dataset}/rows``."""


@route("GET /v1/datasets/{dataset_id}/download", bytes, partition=_side)
def download_rows(
    dataset_id: str, *, partition: Partition = "all", version: int | None = None
) -> Call[bytes]:
    """Return every row as JSON Lines: ``GET /v1/datasets/{dataset}/download``."""


@route("GET /v1/datasets/{dataset_id}/export", bytes, partition=_side)
def export_rows(
    dataset_id: str,
    *,
    format: ExportFormat = "parquet",  # noqa: A002
    partition: Partition = "all",
    version: int | None = None,
) -> Call[bytes]:
    """Return every row as a file: ``GET /v1/datasets/{dataset}/export``.

    The format ``hf`` is a zip of a folder that Hugging Face ``datasets`` loads.
    """


@route("POST /v1/datasets/{dataset_id}/rows/search", FoundRowsAnswer, is_question=True)
def search_rows(
    dataset_id: str,
    *,
    where: Mapping[str, Any] | None = None,
    text: str | None = None,
    order: Mapping[str, Any] | None = None,
    facets: bool = False,
    partition: Partition = "all",
    version: int | None = None,
    offset: int = 0,
    limit: int = 100,
) -> Call[FoundRowsAnswer]:
    """Find rows: ``POST /v1/datasets/{dataset}/rows/search``.

    Parameters
    ----------
    where
        A filter, such as ``{"type": "expected", "decision": "team", "outcome": "billing"}``.
    text
        Words that the context has.
    order
        Such as ``{"by": "context_characters", "descending": True}``.
    facets
        Whether to count how the rows found spread.
    """


@route("POST /v1/datasets/{dataset_id}/rows/similar", FoundSimilar, is_question=True)
def similar_rows(
    dataset_id: str,
    *,
    row: int | None = None,
    context: str | Mapping[str, Any] | Sequence[Any] | None = None,
    partition: Partition = "all",
    version: int | None = None,
    limit: int = 10,
) -> Call[FoundSimilar]:
    """Find the rows, at most 100, most like a row or a context: ``POST …/rows/similar``.

    ``row`` is a row's place in the dataset, from 0.
    """


@route("GET /v1/datasets/{dataset_id}/facets", dict[str, Any], partition=_side)
def facets_of(
    dataset_id: str, *, partition: Partition = "all", version: int | None = None
) -> Call[dict[str, Any]]:
    """Count how rows spread: ``GET /v1/datasets/{dataset}/facets``."""


@route("GET /v1/datasets/{dataset_id}/diff", dict[str, Any], older="from", newer="to")
def diff_versions(
    dataset_id: str, older: int | None = None, newer: int | None = None
) -> Call[dict[str, Any]]:
    """Return the changes of the latest version, or ``newer``, since an older: ``GET …/{dataset}/diff``.

    ``older`` is the version before the newer one when left out.
    """


def _upload(
    path: str,
    fields: tuple[tuple[str, str], ...],
    parts: Mapping[str, bytes],
    answer: type[Any],
    key: str | None,
    content_type: str = NDJSON,
) -> Call[Any]:
    """Send ``examples`` as the body, and sides as a form."""
    if set(parts) == {"examples"}:
        return Call("POST", path, answer, parts["examples"], fields, key, content_type=content_type)
    body, content_type = _form(fields, parts)
    return Call("POST", path, answer, body, idempotency_key=key, content_type=content_type)


def _form(fields: tuple[tuple[str, str], ...], parts: Mapping[str, bytes]) -> tuple[bytes, str]:
    """Return a multipart form and its type; the boundary is a hash of its content."""
    sections = [(f'form-data; name="{name}"', value.encode()) for name, value in fields]
    for name, data in parts.items():
        sections.append((f'form-data; name="{name}"; filename="{name}.jsonl"', data))
    hasher = hashlib.sha256()
    for _, data in sections:
        hasher.update(data)
    boundary = hasher.hexdigest()[:32].encode()
    pieces = []
    for disposition, data in sections:
        head = b"--%s\r\nContent-Disposition: %s\r\n\r\n" % (boundary, disposition.encode())
        pieces += [head, data, b"\r\n"]
    pieces.append(b"--%s--\r\n" % boundary)
    return b"".join(pieces), f"multipart/form-data; boundary={boundary.decode()}"
