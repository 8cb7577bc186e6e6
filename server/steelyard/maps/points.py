"""The points of a map as a file, and the rows that they are of.

Rows are in the order of the version's parts, so that those of one file are read together; of more
than ``MAX_POINTS``, as many are taken at even distances.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steelyard.maps.neighbours import Floats
from steelyard.maps.wire import MAX_POINTS, MAX_TEXT
from steelyard.storage.frame_store import FrameStore

SUFFIX = ".parquet"
_SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        pa.field("x", pa.float32(), nullable=False),
        pa.field("y", pa.float32(), nullable=False),
        pa.field("is_evaluation", pa.bool_(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)


def taken_of(n_rows: int, most: int = MAX_POINTS) -> NDArray[np.int64]:
    """Return which of some rows are laid out: all of a few, and even distances apart of many.

    >>> taken_of(7, most=3).tolist()
    [0, 2, 4]
    """
    if n_rows <= most:
        return np.arange(n_rows, dtype=np.int64)
    return np.arange(most, dtype=np.int64) * n_rows // most


def write_points(
    store: FrameStore,
    indexes: NDArray[np.int64],
    is_evaluation: NDArray[np.bool_],
    texts: list[str],
    points: Floats,
) -> str:
    """Store points, brought to -1 to 1 around their middle; return the file's hash."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    reach = max(float(np.abs(points - middle).max()), 1e-9)
    placed = np.round((points - middle) / reach, 4).astype(np.float32)
    shown = [" ".join(text[: 2 * MAX_TEXT].split())[:MAX_TEXT] for text in texts]
    columns = [indexes, placed[:, 0], placed[:, 1], is_evaluation, shown]
    table = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
    with store.draft() as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)
        return store.adopt(draft, SUFFIX)[0]


def read_points(store: FrameStore, sha256: str, columns: list[str] | None = None) -> pl.DataFrame:
    """Return the points of a map in their order; it blocks."""
    with store.open(f"{sha256}{SUFFIX}") as file:
        return pl.read_parquet(file, columns=columns)
