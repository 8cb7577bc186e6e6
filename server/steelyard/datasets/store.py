"""Rows of datasets and of their versions; the rules are in ``steelyard.datasets.service``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, func, insert, select, update

from steelyard.datasets.tables import dataset_versions, datasets
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import AddedVia, Dataset, InputReceipt, LabelingLineage
from steelyard.storage.pages import MAX_PAGE, newest_first
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled

_decode_manifest = decoder_of(Manifest).decode
#: What of a dataset is JSON in its row.
_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "receipt": decoder_of(InputReceipt).decode,
    "labeling": decoder_of(LabelingLineage).decode,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow:
    """One dataset, as the table holds it; see ``tables.datasets``."""

    id: str
    account_id: str
    name: str
    version: int
    created_at: float
    used_at: float | None
    archived_at: float | None
    deleted_at: float | None
    receipt: InputReceipt | None
    labeling: LabelingLineage | None = None

    def to_wire(self, manifest: Manifest) -> Dataset:
        """Return the dataset as the wire has it, with the counts of its latest version."""
        return Dataset(
            id=self.id,
            name=self.name,
            created_at=self.created_at,
            sha256=manifest.sha256,
            version=manifest.version,
            rows=manifest.rows,
            contexts=manifest.contexts,
            duplicates_removed=manifest.duplicates_removed,
            method=manifest.method,
            evaluation_only=manifest.evaluation_only,
            evaluation_fraction=manifest.evaluation_fraction,
            archived_at=self.archived_at,
            used_at=self.used_at,
            split=manifest.split,
            input=msgspec.UNSET if self.receipt is None else self.receipt,
            labeling=msgspec.UNSET if self.labeling is None else self.labeling,
            warnings=list(manifest.warnings) or msgspec.UNSET,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """One version, as the table holds it; see ``tables.dataset_versions``."""

    dataset_id: str
    version: int
    created_at: float
    added_via: AddedVia
    added_from: str | None
    manifest: Manifest


_DATASET_FIELDS = tuple(DatasetRow.__dataclass_fields__)


def insert_dataset(connection: Connection, row: DatasetRow) -> None:
    """Write a new dataset; its first version is written apart."""
    values = {name: getattr(row, name) for name in _DATASET_FIELDS}
    for name in _DECODERS:
        values[name] = None if values[name] is None else msgspec.json.encode(values[name])
    values["listed_at"] = row.created_at if row.used_at is None else row.used_at
    connection.execute(insert(datasets), values)


def find_dataset(connection: Connection, account_id: str, dataset_id: str) -> DatasetRow | None:
    """Return a dataset of an account, a deleted one too."""
    row = connection.execute(
        select(*(datasets.c[name] for name in _DATASET_FIELDS)).where(
            datasets.c.account_id == account_id, datasets.c.id == dataset_id
        )
    ).first()
    return None if row is None else _dataset(row)


def ids_of_name(connection: Connection, account_id: str, name: str) -> list[str]:
    """Return the datasets of an account that have a name."""
    of = datasets.c
    where = (of.account_id == account_id, of.name == name, of.deleted_at.is_(None))
    return list(connection.scalars(select(of.id).where(*where).order_by(of.id)))


def dataset_names(
    connection: Connection, account_id: str, dataset_ids: Collection[str]
) -> dict[str, str]:
    """Return the names of an account's datasets by their ids; deleted ones have none."""
    of = datasets.c
    where = (of.account_id == account_id, of.id.in_(dataset_ids), of.deleted_at.is_(None))
    return {row.id: row.name for row in connection.execute(select(of.id, of.name).where(*where))}


def page_datasets(
    connection: Connection,
    account_id: str,
    *,
    archived: bool,
    limit: int = MAX_PAGE,
    cursor: str | None = None,
) -> tuple[list[tuple[DatasetRow, Manifest]], str | None]:
    """Return a page of datasets with their latest versions, most recently used first."""
    archive = datasets.c.archived_at
    page = newest_first(
        connection,
        datasets,
        owned=datasets.c.account_id == account_id,
        where=[
            datasets.c.deleted_at.is_(None),
            archive.is_not(None) if archived else archive.is_(None),
        ],
        limit=limit,
        cursor=cursor,
        by="listed_at",
    )
    rows = [_dataset(row) for row in page.rows]
    latest = connection.execute(
        select(dataset_versions.c.dataset_id, dataset_versions.c.manifest)
        .join(datasets, datasets.c.id == dataset_versions.c.dataset_id)
        .where(
            dataset_versions.c.version == datasets.c.version,
            datasets.c.id.in_([row.id for row in rows]),
        )
    )
    manifests = {row.dataset_id: _decode_manifest(row.manifest) for row in latest}
    return [(row, manifests[row.id]) for row in rows], page.next_cursor


def insert_version(connection: Connection, row: VersionRow) -> None:
    """Write a version; the dataset's own row is updated apart."""
    connection.execute(
        insert(dataset_versions),
        {
            "dataset_id": row.dataset_id,
            "version": row.version,
            "created_at": row.created_at,
            "added_via": row.added_via,
            "added_from": row.added_from,
            "manifest": msgspec.json.encode(row.manifest),
        },
    )


def advance_dataset(connection: Connection, dataset_id: str, *, previous: int) -> bool:
    """Count a dataset's version up from the one given; return whether it was the latest."""
    done = connection.execute(
        update(datasets)
        .where(
            datasets.c.id == dataset_id,
            datasets.c.version == previous,
            datasets.c.deleted_at.is_(None),
            datasets.c.archived_at.is_(None),
        )
        .values(version=previous + 1)
    )
    return done.rowcount == 1


def find_version(connection: Connection, dataset_id: str, version: int) -> VersionRow | None:
    """Return a version of a dataset."""
    row = connection.execute(
        select(dataset_versions).where(
            dataset_versions.c.dataset_id == dataset_id, dataset_versions.c.version == version
        )
    ).first()
    return None if row is None else _version(row)


def versions_of(connection: Connection, dataset_id: str) -> list[VersionRow]:
    """Return every version of a dataset, newest first."""
    rows = connection.execute(
        select(dataset_versions)
        .where(dataset_versions.c.dataset_id == dataset_id)
        .order_by(dataset_versions.c.version.desc())
    )
    return [_version(row) for row in rows]


def rename_dataset(connection: Connection, dataset_id: str, name: str) -> None:
    """Rename a dataset."""
    connection.execute(update(datasets).where(datasets.c.id == dataset_id).values(name=name))


def mark_dataset_used(connection: Connection, dataset_id: str, at: float) -> None:
    """Note that work on a dataset started, at a time in Unix seconds."""
    connection.execute(
        update(datasets).where(datasets.c.id == dataset_id).values(used_at=at, listed_at=at)
    )


def set_dataset_archived(connection: Connection, dataset_id: str, at: float | None) -> bool:
    """Put a dataset into the archive at a time, unless it is there already, or take it out."""
    since = None if at is None else func.coalesce(datasets.c.archived_at, at)
    done = connection.execute(
        update(datasets)
        .where(datasets.c.id == dataset_id, datasets.c.deleted_at.is_(None))
        .values(archived_at=since)
    )
    return done.rowcount == 1


def erase_dataset(connection: Connection, dataset_id: str, at: float) -> None:
    """Delete a dataset: of it stay its id, its account and when that was."""
    connection.execute(delete(dataset_versions).where(dataset_versions.c.dataset_id == dataset_id))
    connection.execute(
        update(datasets)
        .where(datasets.c.id == dataset_id)
        .values(name="", receipt=None, labeling=None, deleted_at=at)
    )


def manifests(connection: Connection) -> Iterator[Manifest]:
    """Yield the manifest of every version."""
    for row in connection.execute(select(dataset_versions.c.manifest)):
        yield _decode_manifest(row.manifest)


def live_files(connection: Connection) -> set[str]:
    """Return the hash of every file that some version needs."""
    return {name for manifest in manifests(connection) for name in manifest.files()}


def _dataset(row: Row[Any]) -> DatasetRow:
    values = {name: getattr(row, name) for name in _DATASET_FIELDS}
    for name, decode in _DECODERS.items():
        if values[name] is not None:
            values[name] = decode(values[name])
    return DatasetRow(**values)


def _version(row: Row[Any]) -> VersionRow:
    return filled(VersionRow, row, manifest=_decode_manifest(row.manifest))
