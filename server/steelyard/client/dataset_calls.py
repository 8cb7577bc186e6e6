"""What can be asked of datasets: each function gives the call for one route."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from steelyard.client.calls import Call, encode_body, new_or_checked_key, segment
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

NDJSON: Final = "application/x-ndjson"
CSV: Final = "text/csv"
_PATH = "/v1/datasets"


class FoundRowsAnswer(RowPage, frozen=True, kw_only=True):
    """The rows that a search found, with their places in the dataset and, when asked, counts."""

    indexes: list[int]
    facets: Mapping[str, Any] | None = None


def create_dataset(
    name: str,
    parts: Mapping[str, bytes],
    *,
    evaluation_fraction: float | None = None,
    idempotency_key: str | None = None,
) -> Call[Dataset]:
    """Make a dataset: ``POST /v1/datasets``.

    Parameters
    ----------
    name : str
        Not blank.
    parts : mapping
        ``examples`` alone, or ``training`` and ``evaluation`` or one of them, to JSON Lines.
    evaluation_fraction : float, optional
        Share of the contexts of ``examples`` put aside: 0.1 to 1; 0.2 when left out.
    idempotency_key : str, optional
        Under one key the dataset is made once; a new key for every call when left out.
    """
    fields = _given(name=name, evaluation_fraction=evaluation_fraction)
    return _upload(_PATH, fields, parts, Dataset, new_or_checked_key(idempotency_key))


def add_rows(
    dataset_id: str,
    parts: Mapping[str, bytes],
    *,
    evaluation_fraction: float | None = None,
    content_type: Literal["application/x-ndjson", "text/csv"] = "application/x-ndjson",
    idempotency_key: str | None = None,
) -> Call[Dataset]:
    """Add rows as the next version: ``POST /v1/datasets/{dataset}/versions``.

    Parameters
    ----------
    dataset_id : str
        Which dataset.
    parts, evaluation_fraction, idempotency_key
        As for ``create_dataset``.
    content_type : str
        ``text/csv`` for a table, which is ``examples`` alone.
    """
    fields = _given(evaluation_fraction=evaluation_fraction)
    path = f"{_PATH}/{segment(dataset_id)}/versions"
    key = new_or_checked_key(idempotency_key)
    return _upload(path, fields, parts, Dataset, key, content_type)


def from_feedback(
    *,
    name: str | None = None,
    dataset_id: str | None = None,
    dataset_version: int | None = None,
    since: float | None = None,
    until: float | None = None,
    model: str | None = None,
    decisions: Sequence[str] | None = None,
    decision_ids: Sequence[str] | None = None,
    evaluation_fraction: float | None = None,
    idempotency_key: str | None = None,
) -> Call[DatasetFromFeedback]:
    """Make rows of stored decisions that got feedback: ``POST /v1/datasets/from-feedback``.

    Parameters
    ----------
    name : str, optional
        Of a new dataset; give it or ``dataset_id``.
    dataset_id : str, optional
        The dataset to add to; it takes each stored decision once.
    dataset_version : int, optional
        Refuse unless this is its newest version.
    since, until : float, optional
        Decisions answered at or after the one and before the other, in Unix seconds.
    model : str, optional
        Decisions that this model answered: a base model, a family or a number.
    decisions : sequence of str, optional
        Ids of the decisions to take; all that have feedback when left out.
    decision_ids : sequence of str, optional
        Ids of the stored decisions to take, at most 500; all when left out.
    evaluation_fraction : float, optional
        Share of the new contexts put aside: 0.1 to 1; 0.2 when left out.
    idempotency_key : str, optional
        Under one key the rows are made once; a new key for every call when left out.
    """
    body = encode_body(
        {
            "name": name,
            "dataset_id": dataset_id,
            "dataset_version": dataset_version,
            "since": since,
            "until": until,
            "model": model,
            "decisions": None if decisions is None else list(decisions),
            "decision_ids": None if decision_ids is None else list(decision_ids),
            "evaluation_fraction": evaluation_fraction,
        }
    )
    path = f"{_PATH}/from-feedback"
    key = new_or_checked_key(idempotency_key)
    return Call("POST", path, DatasetFromFeedback, body, idempotency_key=key)


def check_rows(parts: Mapping[str, bytes]) -> Call[DatasetCheck]:
    """Return what is wrong with rows, and store nothing: ``POST /v1/datasets/check``."""
    return _upload(f"{_PATH}/check", {}, parts, DatasetCheck, None)


def list_datasets(
    *, archived: bool = False, limit: int | None = None, cursor: str | None = None
) -> Call[DatasetPage]:
    """Return a page of datasets, most recently used first: ``GET /v1/datasets``.

    Parameters
    ----------
    archived : bool, default False
        The archived ones instead of the others.
    limit : int, optional
        Datasets of the page; 1 to 200.
    cursor : str, optional
        The page before's ``next_cursor``.
    """
    query = _given(archived="true" if archived else None, limit=limit, cursor=cursor)
    return Call("GET", _PATH, DatasetPage, query=tuple(query.items()))


def get_dataset(dataset_id: str) -> Call[Dataset]:
    """Return one dataset: ``GET /v1/datasets/{dataset}``."""
    return Call("GET", f"{_PATH}/{segment(dataset_id)}", Dataset)


def rename_dataset(dataset_id: str, name: str) -> Call[Dataset]:
    """Rename a dataset: ``PATCH /v1/datasets/{dataset}``."""
    path = f"{_PATH}/{segment(dataset_id)}"
    key = new_or_checked_key(None)
    return Call("PATCH", path, Dataset, encode_body({"name": name}), idempotency_key=key)


def delete_dataset(dataset_id: str) -> Call[DeletedDataset]:
    """Delete a dataset with all of its rows, for good: ``DELETE /v1/datasets/{dataset}``."""
    path = f"{_PATH}/{segment(dataset_id)}"
    return Call("DELETE", path, DeletedDataset, idempotency_key=new_or_checked_key(None))


def restore_dataset(dataset_id: str) -> Call[Dataset]:
    """Take a dataset out of the archive: ``POST /v1/datasets/{dataset}/restore``."""
    path = f"{_PATH}/{segment(dataset_id)}/restore"
    return Call("POST", path, Dataset, b"{}", idempotency_key=new_or_checked_key(None))


def list_versions(dataset_id: str) -> Call[DatasetVersions]:
    """Return every version, newest first: ``GET /v1/datasets/{dataset}/versions``."""
    return Call("GET", f"{_PATH}/{segment(dataset_id)}/versions", DatasetVersions)


def list_labels_to_check(dataset_id: str) -> Call[LabelsToCheck]:
    """Return the labels that prompt tuning doubted: ``GET …/labels-to-check``."""
    return Call("GET", f"{_PATH}/{segment(dataset_id)}/labels-to-check", LabelsToCheck)


def page_rows(
    dataset_id: str,
    *,
    offset: int = 0,
    limit: int = 100,
    partition: Partition = "all",
    version: int | None = None,
) -> Call[RowPage]:
    """Return a page of rows: ``GET /v1/datasets/{dataset}/rows``.

    Parameters
    ----------
    dataset_id : str
        Which dataset.
    offset, limit : int
        Rows before the page, and rows of it: 1 to 500.
    partition : {"all", "training", "evaluation"}
        One side, or both.
    version : int, optional
        The latest when left out.
    """
    query = _given(offset=offset, limit=limit, version=version, **_partition(partition))
    path = f"{_PATH}/{segment(dataset_id)}/rows"
    return Call("GET", path, RowPage, query=tuple(query.items()))


def download_rows(
    dataset_id: str, *, partition: Partition = "all", version: int | None = None
) -> Call[bytes]:
    """Return every row as JSON Lines: ``GET /v1/datasets/{dataset}/download``.

    Parameters
    ----------
    dataset_id, partition, version
        As for ``page_rows``.
    """
    query = _given(version=version, **_partition(partition))
    path = f"{_PATH}/{segment(dataset_id)}/download"
    return Call("GET", path, bytes, query=tuple(query.items()))


def export_rows(
    dataset_id: str, *, partition: Partition = "all", version: int | None = None
) -> Call[bytes]:
    """Return every row as a Parquet file: ``GET /v1/datasets/{dataset}/export``.

    Parameters
    ----------
    dataset_id, partition, version
        As for ``page_rows``.
    """
    query = _given(format="parquet", version=version, **_partition(partition))
    path = f"{_PATH}/{segment(dataset_id)}/export"
    return Call("GET", path, bytes, query=tuple(query.items()))


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
    dataset_id : str
        Which dataset.
    where : mapping, optional
        A filter, such as ``{"type": "expected", "decision": "team", "outcome": "billing"}``.
    text : str, optional
        Words that the context has.
    order : mapping, optional
        Such as ``{"by": "context_characters", "descending": True}``.
    facets : bool, default False
        Whether to count how the rows found spread.
    partition, version, offset, limit
        As for ``page_rows``.
    """
    body = encode_body(
        {
            "where": where,
            "text": text,
            "order": order,
            "facets": facets,
            "partition": partition,
            "version": version,
            "offset": offset,
            "limit": limit,
        }
    )
    return Call("POST", f"{_PATH}/{segment(dataset_id)}/rows/search", FoundRowsAnswer, body)


def similar_rows(
    dataset_id: str,
    *,
    row: int | None = None,
    context: str | Mapping[str, Any] | Sequence[Any] | None = None,
    partition: Partition = "all",
    version: int | None = None,
    limit: int = 10,
) -> Call[FoundSimilar]:
    """Find the rows most like one, or like a context: ``POST …/rows/similar``.

    Parameters
    ----------
    dataset_id : str
        Which dataset.
    row : int, optional
        A row's place in the dataset, from 0; give it or ``context``.
    context : str, mapping or sequence, optional
        Any context.
    partition, version
        As for ``page_rows``.
    limit : int, default 10
        1 to 100.
    """
    body = encode_body(
        {
            "row": row,
            "context": context,
            "partition": partition,
            "version": version,
            "limit": limit,
        }
    )
    return Call("POST", f"{_PATH}/{segment(dataset_id)}/rows/similar", FoundSimilar, body)


def facets_of(
    dataset_id: str, *, partition: Partition = "all", version: int | None = None
) -> Call[dict[str, Any]]:
    """Count how rows spread: ``GET /v1/datasets/{dataset}/facets``.

    Parameters
    ----------
    dataset_id, partition, version
        As for ``page_rows``.
    """
    query = _given(version=version, **_partition(partition))
    path = f"{_PATH}/{segment(dataset_id)}/facets"
    return Call("GET", path, dict[str, Any], query=tuple(query.items()))


def diff_versions(
    dataset_id: str, older: int | None = None, newer: int | None = None
) -> Call[dict[str, Any]]:
    """Return what a version adds to an older one: ``GET /v1/datasets/{dataset}/diff``.

    Parameters
    ----------
    dataset_id : str
        Which dataset.
    older, newer : int, optional
        The latest version and the one before it when left out.
    """
    query = _given(**{"from": older, "to": newer})
    path = f"{_PATH}/{segment(dataset_id)}/diff"
    return Call("GET", path, dict[str, Any], query=tuple(query.items()))


def _partition(partition: Partition) -> dict[str, Any]:
    return {} if partition == "all" else {"partition": partition}


def _given(**fields: Any) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items() if value is not None}


def _upload(
    path: str,
    fields: Mapping[str, str],
    parts: Mapping[str, bytes],
    answer: type[Any],
    key: str | None,
    content_type: str = NDJSON,
) -> Call[Any]:
    """Send ``examples`` as the body, and sides as a form."""
    if set(parts) == {"examples"}:
        body, query = parts["examples"], tuple(fields.items())
    else:
        body, content_type = _form(fields, parts)
        query = ()
    return Call(
        "POST",
        path,
        answer,
        body,
        query=query,
        idempotency_key=key,
        content_type=content_type,
    )


def _form(fields: Mapping[str, str], parts: Mapping[str, bytes]) -> tuple[bytes, str]:
    """Write a multipart form; the boundary is a hash of what is in it."""
    sections = [(f'form-data; name="{name}"', value.encode()) for name, value in fields.items()] + [
        (f'form-data; name="{name}"; filename="{name}.jsonl"', data) for name, data in parts.items()
    ]
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
