"""Versions of a dataset: their rows, the place of the rows, and the hash of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from steelyard.datasets.wire import AddedVia, DatasetVersion, DatasetWarning, Partition, Side, Split
from steelyard.wire.filling import filled
from steelyard.wire.methods import Method

_FIRST = b"steelyard dataset 1\n"
_LATER = b"steelyard dataset version\n"
_WITHOUT = b"steelyard dataset without\n"


class Part(Struct, frozen=True, kw_only=True):
    """A file of rows of one side, shared by every version from the one that wrote it on."""

    sha256: str
    side: Side
    rows: int
    bytes: int
    first: int
    last: int


class Manifest(Struct, frozen=True, kw_only=True):
    """Everything about one version but when and how it was made; stored as JSON.

    ``known`` names files with the hashes of the rows of some parts.
    """

    dataset_id: str
    version: int
    sha256: str
    method: Method
    rows: int
    added: int
    contexts: int
    duplicates_removed: int
    split: Split
    evaluation_fraction: float
    evaluation_only: bool
    parts: tuple[Part, ...]
    definitions: str
    places: int = 0
    retired: str | None = None
    warnings: tuple[DatasetWarning, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def next_index(self) -> int:
        """The index that a row added next gets: past that of every row so far."""
        return self.places or self.rows

    def rows_of(self, partition: Partition) -> int:
        """Return the number of rows of a side, or of both."""
        if partition == "all":
            return self.rows
        return self.split.training if partition == "training" else self.split.evaluation

    def parts_of(self, partition: Partition) -> tuple[Part, ...]:
        """Return the parts of a side, or of both."""
        return tuple(part for part in self.parts if partition in ("all", part.side))

    def part_names(self, partition: Partition = "all") -> list[str]:
        """Return the names of the files of rows of a side, or of both."""
        return [f"{part.sha256}.parquet" for part in self.parts_of(partition)]

    def files(self) -> frozenset[str]:
        """Return the hash of every file that the version needs."""
        retired = () if self.retired is None else (self.retired,)
        parts = (part.sha256 for part in self.parts)
        return frozenset((self.definitions, *retired, *self.known, *parts))

    def rows_before(self, side: Side, older: Manifest | None) -> int:
        """Return how many rows of a side an older version of the dataset has too.

        They are the first of the side: rows keep their indexes, and the rows that a version adds or
        relabels follow all earlier ones.
        """
        if older is None:
            return 0
        return sum(part.rows for part in self.parts_of(side) if part.first < older.next_index)

    def to_wire(
        self, created_at: float, added_via: AddedVia, added_from: str | None = None
    ) -> DatasetVersion:
        """Return the version as the wire has it; ``created_at`` is in Unix seconds."""
        return filled(
            DatasetVersion, self, created_at=created_at, added_via=added_via, added_from=added_from
        )


def hash_version(row_hashes: Iterable[bytes], previous: str | None = None) -> str:
    """Return the hash that names a version, of sorted hashes of distinct rows."""
    hasher = hashlib.sha256(_FIRST if previous is None else _LATER + previous.encode() + b"\n")
    last = b""
    for row_hash in row_hashes:
        if row_hash <= last:
            raise ValueError("The hashes of rows are not sorted, or one is there twice.")
        hasher.update(row_hash)
        last = row_hash
    return hasher.hexdigest()


def hash_without(row_hashes: Iterable[bytes], previous: str) -> str:
    """Return the hash that names a version without some of its rows."""
    hasher = hashlib.sha256(_WITHOUT + previous.encode() + b"\n")
    for row_hash in row_hashes:
        hasher.update(row_hash)
    return hasher.hexdigest()
