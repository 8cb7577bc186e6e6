"""Pages, downloads and searches over the rows of a version.

A page reads the groups of rows that it touches and no other, so that one far into the dataset costs
as much as the first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steelyard.datasets.filters import Facets, Filter, Sort
from steelyard.datasets.frames.filtering import filter_expression, sort_expressions
from steelyard.datasets.frames.rows import SENT_COLUMNS, encode_rows
from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.versions import Manifest, Part
from steelyard.datasets.wire import DEFAULT_PAGE_ROWS, SIDES, Partition, Side
from steelyard.storage.frame_store import FrameStore

_COLUMNS = ["index", *SENT_COLUMNS]
#: Footers kept in memory; one of a small file takes some 35 kB.
_CACHED_FOOTERS = 128
#: Rows that are read at once for a download, and bytes of a file that are read at once for it.
_ROWS, _BUFFER = 256, 64 * 1024
#: Bytes of a piece of a download, so that a thread's turn is worth it.
_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row as it is sent back."""

    index: int
    side: Side
    json: bytes


class RowStore:
    """Reads the rows of versions; safe to use from several threads.

    Every method raises ``steelyard.errors.DataDamagedError`` where a file is missing or not as it was
    written, and ``steelyard.errors.StorageUnavailableError`` where it cannot be read otherwise.
    """

    def __init__(self, store: FrameStore) -> None:
        self._store = store
        self._footer = lru_cache(_CACHED_FOOTERS)(self._read_footer)

    def page(
        self,
        manifest: Manifest,
        *,
        partition: Partition = "all",
        offset: int = 0,
        limit: int = DEFAULT_PAGE_ROWS,
    ) -> list[StoredRow]:
        """Return a page of rows."""
        if partition == "all" and manifest.places:
            # Rows were removed, so that a row's place among the others is not its index.
            return self.rows_at(manifest, self.indexes(manifest)[offset : offset + limit].tolist())
        if partition == "all":
            unsorted = [
                row
                for part in manifest.parts
                if part.first < offset + limit and part.last >= offset
                for row in self._rows_between(manifest, part, offset, offset + limit)
            ]
            return sorted(unsorted, key=lambda row: row.index)
        rows: list[StoredRow] = []
        for part in manifest.parts_of(partition):
            if offset >= part.rows:
                offset -= part.rows
                continue
            rows += self._rows_from(manifest, part, offset, limit - len(rows))
            if len(rows) >= limit:
                break
            offset = 0
        return rows

    def iterate(self, manifest: Manifest, partition: Partition = "all") -> Iterator[StoredRow]:
        """Return every row, some in memory at a time."""
        sides = SIDES if partition == "all" else (partition,)
        streams = [self._stream(manifest, manifest.parts_of(side)) for side in sides]
        return heapq.merge(*streams, key=lambda row: row.index)

    def iterate_side(self, manifest: Manifest, side: Side, start: int = 0) -> Iterator[StoredRow]:
        """Return the rows of a side from a place on, without reading the rows before."""
        for part in manifest.parts_of(side):
            if start < part.rows:
                yield from self._stream(manifest, [part], start)
            start = max(0, start - part.rows)

    def download(self, manifest: Manifest, partition: Partition = "all") -> Iterator[bytes]:
        """Yield every row as JSON Lines, in pieces of several rows; the same bytes for ever."""
        piece: list[bytes] = []
        n_bytes = 0
        for row in self.iterate(manifest, partition):
            piece.append(row.json)
            n_bytes += len(row.json)
            if n_bytes >= _PIECE_BYTES:
                yield b"\n".join((*piece, b""))
                piece, n_bytes = [], 0
        if piece:
            yield b"\n".join((*piece, b""))

    def rows_at(self, manifest: Manifest, indexes: Sequence[int]) -> list[StoredRow]:
        """Return the rows at places in the dataset, in the order asked; unknown places are skipped."""
        if not indexes:
            return []
        # A range goes to the statistics of the files, so that groups far off are not read.
        near = (pl.col("index") >= min(indexes)) & (pl.col("index") <= max(indexes))
        selected = scan(self._store, manifest).filter(near & pl.col("index").is_in(list(indexes)))
        with self._store.reading(*manifest.part_names()):
            table = selected.select(*_COLUMNS, "side").collect().to_arrow()
            rows = _stored(table, manifest, table["side"].to_pylist())
            by_index = {row.index: row for row in rows}
        return [by_index[index] for index in indexes if index in by_index]

    def find(
        self,
        manifest: Manifest,
        *,
        where: Filter | None = None,
        order: Sort | None = None,
        partition: Partition = "all",
        offset: int = 0,
        limit: int = DEFAULT_PAGE_ROWS,
    ) -> tuple[int, list[StoredRow]]:
        """Return a page of the rows that a filter holds for."""
        indexes = self.indexes(manifest, where=where, order=order, partition=partition)
        page = indexes[offset : offset + limit].tolist()
        return len(indexes), self.rows_at(manifest, page)

    def indexes(
        self,
        manifest: Manifest,
        *,
        where: Filter | None = None,
        order: Sort | None = None,
        partition: Partition = "all",
    ) -> NDArray[np.int64]:
        """Return the places of the rows that a filter holds for, in an order; as ``find``."""
        frame = scan(self._store, manifest, partition)
        if where is not None:
            frame = frame.filter(filter_expression(where, manifest.method))
        keys, is_descending = sort_expressions(order or Sort(), manifest.method)
        sorted_frame = frame.select(
            "index", *(key.alias(f"key{place}") for place, key in enumerate(keys))
        ).sort(
            [f"key{place}" for place in range(len(keys))], descending=is_descending, nulls_last=True
        )
        with self._store.reading(*manifest.part_names(partition)):
            indexes: NDArray[np.int64] = sorted_frame.select("index").collect()["index"].to_numpy()
        return indexes

    def facets(
        self, manifest: Manifest, *, where: Filter | None = None, partition: Partition = "all"
    ) -> Facets:
        """Count how the rows that a filter holds for spread over sides and expected outcomes."""
        frame = scan(self._store, manifest, partition)
        if where is not None:
            frame = frame.filter(filter_expression(where, manifest.method))
        entries = frame.select("labels").explode("labels").unnest("labels")
        expecting = entries.filter(pl.col("is_top")).group_by("decision", "outcome").len()
        with self._store.reading(*manifest.part_names(partition)):
            sides, tops = pl.collect_all(
                [frame.group_by("side").len(), expecting.sort("decision", "outcome")]
            )
        counted = dict(sides.rows())
        expected: dict[str, dict[str, int]] = {}
        for decision, outcome, count in tops.rows():
            expected.setdefault(decision, {})[outcome] = count
        return Facets(
            rows=sum(counted.values()),
            sides={side: counted[side] for side in SIDES if side in counted},
            expected=expected,
        )

    def _read_footer(self, name: str) -> pq.FileMetaData:
        with self._store.open(name) as file:
            return pq.read_metadata(file)

    def _read_groups(self, part: Part, groups: Sequence[int]) -> pa.Table:
        name = f"{part.sha256}.parquet"
        with self._store.open(name) as file:
            parquet = pq.ParquetFile(
                file, metadata=self._footer(name), page_checksum_verification=True
            )
            table = parquet.read_row_groups(list(groups), columns=_COLUMNS, use_threads=False)
            # Texts of a damaged file may be no UTF-8, which Arrow itself does not look at.
            table.validate(full=True)
            return table

    def _rows_from(
        self, manifest: Manifest, part: Part, offset: int, limit: int
    ) -> list[StoredRow]:
        """Return rows of a part by their places in it."""
        footer = self._footer(f"{part.sha256}.parquet")
        groups: list[int] = []
        start = skipped = 0
        for group in range(footer.num_row_groups):
            stop = start + footer.row_group(group).num_rows
            if start < offset + limit and stop > offset:
                skipped = skipped if groups else offset - start
                groups.append(group)
            start = stop
        table = self._read_groups(part, groups).slice(skipped, limit)
        return list(_stored(table, manifest, repeat(part.side)))

    def _rows_between(
        self, manifest: Manifest, part: Part, first: int, stop: int
    ) -> list[StoredRow]:
        """Return rows of a part by their places in the dataset."""
        footer = self._footer(f"{part.sha256}.parquet")
        groups = []
        for group in range(footer.num_row_groups):
            statistics = footer.row_group(group).column(0).statistics
            if statistics.min < stop and statistics.max >= first:
                groups.append(group)
        if not groups:
            return []
        table = self._read_groups(part, groups)
        index = table["index"]
        inside = pc.and_(pc.greater_equal(index, first), pc.less(index, stop))
        return list(_stored(table.filter(inside), manifest, repeat(part.side)))

    def _stream(
        self, manifest: Manifest, parts: Sequence[Part], skipped: int = 0
    ) -> Iterator[StoredRow]:
        for part in parts:
            name = f"{part.sha256}.parquet"
            footer = self._footer(name)
            groups = list(range(footer.num_row_groups))
            while groups and skipped >= footer.row_group(groups[0]).num_rows:
                skipped -= footer.row_group(groups.pop(0)).num_rows
            with self._store.open(name) as file:
                parquet = pq.ParquetFile(file, metadata=footer, buffer_size=_BUFFER)
                for batch in parquet.iter_batches(
                    _ROWS, row_groups=groups, columns=_COLUMNS, use_threads=False
                ):
                    table = pa.Table.from_batches([batch.slice(skipped)])
                    skipped = max(0, skipped - len(batch))
                    yield from _stored(table, manifest, repeat(part.side))


def _stored(table: pa.Table, manifest: Manifest, sides: Iterable[Side]) -> Iterator[StoredRow]:
    indexes = table["index"].to_pylist()
    return map(StoredRow, indexes, sides, encode_rows(table, manifest.method))
