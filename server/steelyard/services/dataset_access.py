"""Whose dataset it is, and whether it may be read or added to."""

from __future__ import annotations

from sqlalchemy import Connection

from steelyard.errors import DatasetArchivedError, DatasetDeletedError, NotFoundError
from steelyard.storage.state.datasets import DatasetRow, VersionRow, find_dataset, find_version
from steelyard.wire.violations import show


def require_dataset(
    connection: Connection, account_id: str, dataset_id: str, *, is_new_work: bool = False
) -> DatasetRow:
    """Give a dataset of an account.

    Parameters
    ----------
    connection : sqlalchemy.Connection
        In a transaction.
    account_id, dataset_id : str
        Whose, and which.
    is_new_work : bool, default False
        Whether work is to start on it, which an archived one does not take.

    Raises
    ------
    steelyard.errors.NotFoundError
        When the account never had such a dataset.
    steelyard.errors.DatasetDeletedError
        When it was deleted.
    steelyard.errors.DatasetArchivedError
        When it is archived and work is to start on it.
    """
    row = find_dataset(connection, account_id, dataset_id)
    if row is None:
        raise NotFoundError(f"There is no dataset {show(dataset_id)}; look at GET /v1/datasets.")
    if row.deleted_at is not None:
        raise DatasetDeletedError(f"The dataset {dataset_id} was deleted; its rows are gone.")
    if is_new_work and row.archived_at is not None:
        raise DatasetArchivedError(
            f"The dataset {dataset_id} is archived; restore it before starting work on it."
        )
    return row


def require_version(
    connection: Connection, row: DatasetRow, version: int | None = None
) -> VersionRow:
    """Give a version of a dataset; the latest when none is named.

    Raises
    ------
    steelyard.errors.NotFoundError
        When there is no such version.
    """
    wanted = row.version if version is None else version
    # A number past every version may be past what a database takes.
    found = find_version(connection, row.id, wanted) if 0 < wanted <= row.version else None
    if found is None:
        raise NotFoundError(
            f"The dataset {row.id} has no version {version}; its latest is {row.version}."
        )
    return found
