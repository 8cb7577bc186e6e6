"""Predictions of an evaluation as Parquet files: one row for each scored decision.

================ ============================================================================
column           holds
================ ============================================================================
row              place of the decision's row among the evaluation rows, from 0
place            place of the decision in its row, from 0
context_sha256   names the context
decision_id      which decision
kind             single, binary or ordinal
outcomes         names of the outcomes, in order
probabilities    of each outcome
labels           of each outcome: its target or its reward
context_tokens   length of the context
facets           compact JSON: values of the row that decisions can be cut by
================ ============================================================================

Here: columns, files, and records made of them. Not here: which file belongs to which evaluation
(``steelyard.storage.state.evaluations``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from steelyard.evaluation.records import Records, Supervision, records_from_columns
from steelyard.storage.frames.store import FrameStore
from steelyard.wire.decide import Kind

SUFFIX = ".parquet"
_NUMBERS = pa.list_(pa.field("element", pa.float64(), nullable=False))
_NAMES = pa.list_(pa.field("element", pa.string(), nullable=False))
SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("place", pa.int32(), nullable=False),
        pa.field("context_sha256", pa.string(), nullable=False),
        pa.field("decision_id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("outcomes", _NAMES, nullable=False),
        pa.field("probabilities", _NUMBERS, nullable=False),
        pa.field("labels", _NUMBERS, nullable=False),
        pa.field("context_tokens", pa.int64(), nullable=False),
        pa.field("facets", pa.string(), nullable=False),
    ]
)


class Prediction(Struct, frozen=True, gc=False):
    """One scored decision; see the table of columns."""

    row: int
    place: int
    context_sha256: str
    decision_id: str
    kind: Kind
    outcomes: tuple[str, ...]
    probabilities: tuple[float, ...]
    labels: tuple[float, ...]
    context_tokens: int
    facets: str


def write_predictions(store: FrameStore, predictions: Sequence[Prediction]) -> str:
    """Store predictions in a file of their own; give its hash. It is durable on return.

    Raises
    ------
    steelyard.errors.StorageUnavailableError
        When it cannot be stored; nothing is to be referred to then.
    """
    columns = [
        pa.array([getattr(one, field.name) for one in predictions], field.type) for field in SCHEMA
    ]
    return write_table(store, pa.table(columns, schema=SCHEMA))


def write_table(store: FrameStore, table: pa.Table) -> str:
    """Store a table of predictions; give its hash. Raises as ``write_predictions``."""
    with store.draft() as draft:
        pq.write_table(table, draft, compression="zstd")
        return store.adopt(draft, SUFFIX)[0]


def read_table(
    store: FrameStore, hashes: Sequence[str], columns: Sequence[str] | None = None
) -> pa.Table:
    """Give the predictions of some files, one after the other.

    Raises
    ------
    steelyard.errors.StorageUnavailableError
        When a file is missing or damaged.
    """
    schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    tables = [schema.empty_table()]
    for sha256 in hashes:
        with store.open(f"{sha256}{SUFFIX}") as file:
            tables.append(pq.read_table(file, columns=columns, use_threads=False).cast(schema))
    return pa.concat_tables(tables)


def scored_rows(store: FrameStore, hashes: Sequence[str]) -> set[int]:
    """Give the places of the rows that files hold predictions of."""
    return set(read_table(store, hashes, ["row"])["row"].to_pylist())


def merge(store: FrameStore, hashes: Sequence[str]) -> pa.Table:
    """Give the predictions of some files in dataset order and then decision order."""
    return read_table(store, hashes).sort_by([("row", "ascending"), ("place", "ascending")])


def records_of(table: pa.Table, supervision: Supervision) -> Records:
    """Give predictions as records.

    Raises
    ------
    steelyard.evaluation.records.UnmeasurableError
        When there are none, or a number of them is missing or not finite.
    """
    return records_from_columns(
        contexts=table["context_sha256"].to_pylist(),
        decision_ids=table["decision_id"].to_pylist(),
        kinds=table["kind"].to_pylist(),
        outcomes=table["outcomes"].to_pylist(),
        probabilities=list(_vectors(table["probabilities"])),
        labels=list(_vectors(table["labels"])),
        supervision=supervision,
    )


def _vectors(column: pa.ChunkedArray) -> Iterator[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    for chunk in column.chunks:
        offsets, values = chunk.offsets.to_numpy(), chunk.values.to_numpy()
        for start, stop in pairwise(offsets.tolist()):
            yield values[start:stop]
