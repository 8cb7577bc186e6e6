"""Access to a dataset: its owner, and whether it may be read or added to."""

from __future__ import annotations

from sqlalchemy import Connection

from steelyard.datasets.store import DatasetRow, VersionRow, find_dataset, find_version
from steelyard.errors import DatasetArchivedError, DatasetDeletedError, NotFoundError
from steelyard.wire.violations import show


def require_dataset(
    connection: Connection, account_id: str, dataset_id: str, *, is_new_work: bool = False
) -> DatasetRow:
    """Return a dataset of an account."""
    row = find_dataset(connection, account_id, dataset_id)
    if row is None:
        raise unknown_dataset(dataset_id)
    if row.deleted_at is not None:
        raise DatasetDeletedError(f"The dataset {dataset_id} was deleted; its rows are gone.")
    if is_new_work and row.archived_at is not None:
        raise DatasetArchivedError(
            f"The dataset {dataset_id} is archived; restore it before starting work on it."
        )
    return row


def unknown_dataset(dataset_id: str) -> NotFoundError:
    """Return the refusal of a dataset that the account never had."""
    return NotFoundError(f"There is no dataset {show(dataset_id)}; look at GET /v1/datasets.")


def require_version(
    connection: Connection, row: DatasetRow, version: int | None = None
) -> VersionRow:
    """Return a version of a dataset; the latest when none is named."""
    number = row.version if version is None else version
    # A number past every version may be past what a database takes.
    version_row = find_version(connection, row.id, number) if 0 < number <= row.version else None
    if version_row is None:
        raise NotFoundError(
            f"The dataset {row.id} has no version {version}; its latest is {row.version}."
        )
    return version_row
