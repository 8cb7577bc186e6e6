"""Rows of one request on the disk, from when they are read until their sides are known."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.datasets.frames.rows import STAGED_SCHEMA

_HASH_BYTES = 32
_FIRST_WORDS = 1 << 64


class StagedRows:
    """A file of rows that is written, then read a batch at a time and never held whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._sink: Any = pa.ipc.new_file(str(path), STAGED_SCHEMA, options=options)
        self.n_rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Write rows of ``STAGED_SCHEMA``."""
        self._sink.write_batch(rows)
        self.n_rows += rows.num_rows

    def close(self) -> None:
        """End the writing; the rows can be read from here on."""
        self._sink.close()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows as they were written."""
        fields = None if columns is None else [STAGED_SCHEMA.get_field_index(c) for c in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        start = 0
        # Read, not mapped: pages of a mapped file count as memory of the process.
        with pa.OSFile(str(self._path)) as source:
            reader = pa.ipc.open_file(source, options=options)
            for number in range(reader.num_record_batches):
                batch = pa.Table.from_batches([reader.get_batch(number)])
                yield start, batch
                start += len(batch)

    def keys(self, contexts: range) -> pl.DataFrame:
        """Return the keys of rows, for the rows on some contexts."""
        tables = []
        for start, batch in self.batches(("context_sha256", "row_sha256", "named")):
            is_in = _is_in(batch["context_sha256"], contexts)
            places = pa.array(np.arange(start, start + len(batch)))
            tables.append(batch.append_column("place", places).filter(pa.array(is_in)))
        return pl.DataFrame(pl.from_arrow(pa.concat_tables(tables)))

    def row_hashes(self, rows: range, is_selected: NDArray[np.bool_]) -> list[bytes]:
        """Return the hashes, in a range, of the rows that a mask over all rows wants; sorted."""
        hashes_in_range: list[bytes] = []
        for start, batch in self.batches(("row_sha256",)):
            hashes = batch["row_sha256"]
            mask = _is_in(hashes, rows) & is_selected[start : start + len(batch)]
            hashes_in_range += hashes.filter(pa.array(mask)).to_pylist()
        return sorted(hashes_in_range)

    def lines(self, places: Sequence[int]) -> list[int]:
        """Return the line that each of some rows came on."""
        line_at: dict[int, int] = {}
        for start, batch in self.batches(("line",)):
            inside = [place for place in places if start <= place < start + len(batch)]
            line_at |= {place: batch["line"][place - start].as_py() for place in inside}
        return [line_at[place] for place in places]


def hash_ranges(n: int) -> list[range]:
    """Cut all hashes into ranges of the numbers that their first 8 bytes are."""
    edges = [_FIRST_WORDS * number // n for number in range(n + 1)]
    return [range(low, high) for low, high in itertools.pairwise(edges)]


def _is_in(hashes: pa.ChunkedArray, hash_range: range) -> NDArray[np.bool_]:
    (chunk,) = hashes.chunks
    words = np.frombuffer(chunk.buffers()[1], dtype=">u8").reshape(-1, _HASH_BYTES // 8)
    first = words[chunk.offset : chunk.offset + len(chunk), 0]
    is_in: NDArray[np.bool_] = first >= np.uint64(hash_range.start)
    return is_in & (first <= np.uint64(hash_range.stop - 1))
