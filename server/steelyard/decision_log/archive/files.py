"""Parquet files of stored decisions, in groups of rows in the order of the log.

A page of the log reads one group, and of it the columns that it shows: requests are the longest column
and are read only on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steelyard.decision_log.store import AnswerCriteria
from steelyard.storage.frame_store import FrameStore

#: The most rows, and bytes of their contents, of a group and of a file.
GROUP_ROWS, GROUP_BYTES = 2_000, 4 * 1024 * 1024
FILE_ROWS, FILE_BYTES = 100_000, 128 * 1024 * 1024

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("created_at", pa.float64(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("version", pa.string()),
        pa.field("total_ms", pa.float64()),
        pa.field("key_id", pa.string()),
        pa.field("results", pa.binary(), nullable=False),
        pa.field("outcome_names", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary()),
        pa.field("request", pa.binary(), nullable=False),
        pa.field("named", pa.string()),
        pa.field("named_alias", pa.string()),
    ]
)
_SUFFIX = ".parquet"
#: Files whose footers are kept at hand.
_FOOTERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file as the state names it."""

    sha256: str
    first_at: float
    last_at: float
    last_id: str
    least_id: str
    greatest_id: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Group:
    """The statistics of a group in the footer."""

    first_at: float
    last_at: float
    least_id: str
    greatest_id: str


class ArchiveFiles:
    """Files of stored decisions in a store; safe to use from several threads."""

    def __init__(self, store: FrameStore) -> None:
        self.store = store
        self._footer = lru_cache(_FOOTERS)(self._read_footer)

    def write(self) -> FileWriter:
        """Return a writer of one file."""
        return FileWriter(self.store)

    def check(self, sha256: str) -> None:
        """Raise ``DataDamagedError`` when a file is not as it was written."""
        self.store.check(f"{sha256}{_SUFFIX}")

    def read(
        self, sha256: str, criteria: AnswerCriteria, columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        """Yield the matching rows of a file, a table for each group that has some.

        Groups come in the order of the criteria, and rows within a group the oldest first.
        """
        name = f"{sha256}{_SUFFIX}"
        footer, groups = self._footer(name)
        places = [place for place, group in enumerate(groups) if _may_have(group, criteria)]
        if criteria.newest_first:
            places.reverse()
        needed = sorted({*columns, *_filter_columns(criteria)}, key=SCHEMA.names.index)
        for place in places:
            with self.store.open(name) as file:
                parquet = pq.ParquetFile(file, metadata=footer, page_checksum_verification=True)
                table = parquet.read_row_group(place, columns=needed, use_threads=False)
                # Texts of a damaged file may be no UTF-8, which Arrow itself does not look at.
                table.validate(full=True)
                table = _with_newer_columns(table, needed)
                matches = table.filter(_mask(table, criteria))
            if len(matches):
                yield matches

    def _read_footer(self, name: str) -> tuple[pq.FileMetaData, list[_Group]]:
        with self.store.open(name) as file:
            footer = pq.read_metadata(file)
        groups = []
        for place in range(footer.num_row_groups):
            ids, times = (footer.row_group(place).column(at).statistics for at in (0, 1))
            groups.append(_Group(times.min, times.max, ids.min, ids.max))
        return footer, groups


class FileWriter:
    """Writes rows to a draft, from ``with`` to its end; ``adopt`` makes it a file."""

    def __init__(self, store: FrameStore) -> None:
        self._store = store
        self._closing = ExitStack()
        self._draft: Path | None = None
        self._writer: pq.ParquetWriter | None = None
        self._first_at = 0.0
        self._last = (0.0, "")
        self._least_id = self._greatest_id = ""
        self.n_rows = self._n_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the file has as much as one should."""
        return self.n_rows >= FILE_ROWS or self._n_bytes >= FILE_BYTES

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def add(self, rows: Sequence[Any]) -> None:
        """Add a group of rows of the state, which come after those before."""
        if self._writer is None:
            self._draft = self._closing.enter_context(self._store.draft())
            self._writer = self._closing.enter_context(
                pq.ParquetWriter(
                    str(self._draft),
                    SCHEMA,
                    compression="zstd",
                    compression_level=3,
                    use_dictionary=["model", "version", "key_id", "outcome_names"],
                    write_statistics=["id", "created_at"],
                    write_page_checksum=True,
                )
            )
            self._first_at, self._least_id = rows[0].created_at, rows[0].id
        columns = {name: [getattr(row, name) for row in rows] for name in SCHEMA.names}
        table = pa.table(columns, schema=SCHEMA)
        self._writer.write_table(table, row_group_size=len(rows))
        self._last = (rows[-1].created_at, rows[-1].id)
        self._least_id = min(self._least_id, *columns["id"])
        self._greatest_id = max(self._greatest_id, *columns["id"])
        self.n_rows += len(rows)
        self._n_bytes += table.nbytes

    def adopt(self) -> WrittenFile:
        """Return the file, which is durable."""
        assert self._writer is not None  # noqa: S101
        assert self._draft is not None  # noqa: S101
        self._writer.close()
        sha256, n_bytes = self._store.adopt(self._draft, _SUFFIX)
        return WrittenFile(
            sha256=sha256,
            first_at=self._first_at,
            last_at=self._last[0],
            last_id=self._last[1],
            least_id=self._least_id,
            greatest_id=self._greatest_id,
            rows=self.n_rows,
            bytes=n_bytes,
        )


def _may_have(group: _Group, criteria: AnswerCriteria) -> bool:
    """Return whether a group may have matching rows."""
    if group.last_at < criteria.since:
        return False
    if criteria.until is not None and group.first_at >= criteria.until:
        return False
    if criteria.after is not None:
        at = criteria.after[0]
        if group.first_at > at if criteria.newest_first else group.last_at < at:
            return False
    return criteria.ids is None or any(
        group.least_id <= id_ <= group.greatest_id for id_ in criteria.ids
    )


def _filter_columns(criteria: AnswerCriteria) -> list[str]:
    """Return the columns that the criteria and the order of the log need."""
    names = ["id", "created_at"]
    if criteria.model is not None:
        names += ["model", "version"]
    if criteria.key is not None:
        names.append("key_id")
    if criteria.named is not None:
        names.append("named")
    return names


def _with_newer_columns(table: pa.Table, needed: Sequence[str]) -> pa.Table:
    """Return a table with the columns that files of an older version lack, empty."""
    for name in needed:
        if name not in table.column_names:
            field = SCHEMA.field(name)
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def _mask(table: pa.Table, criteria: AnswerCriteria) -> Any:
    at, ids = table["created_at"], table["id"]
    conditions = [pc.greater_equal(at, criteria.since)]
    if criteria.until is not None:
        conditions.append(pc.less(at, criteria.until))
    if criteria.model is not None:
        is_version = pc.fill_null(pc.equal(table["version"], criteria.model), fill_value=False)
        conditions.append(pc.or_(pc.equal(table["model"], criteria.model), is_version))
    if criteria.key is not None:
        conditions.append(pc.fill_null(pc.equal(table["key_id"], criteria.key), fill_value=False))
    if criteria.named is not None:
        names = table["named"]
        is_version = pc.starts_with(names, f"{criteria.named}@")
        is_named = pc.or_(pc.equal(names, criteria.named), is_version)
        conditions.append(pc.fill_null(is_named, fill_value=False))
    if criteria.ids is not None:
        conditions.append(pc.is_in(ids, value_set=pa.array(list(criteria.ids), pa.string())))
    if criteria.after is not None:
        comes = pc.less if criteria.newest_first else pc.greater
        last_at, last_id = criteria.after
        same = pc.and_(pc.equal(at, last_at), comes(ids, last_id))
        conditions.append(pc.or_(comes(at, last_at), same))
    mask = conditions[0]
    for condition in conditions[1:]:
        mask = pc.and_(mask, condition)
    return mask
