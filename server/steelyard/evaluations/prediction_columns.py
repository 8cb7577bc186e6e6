"""The columns of predictions: one row for each scored decision.

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
input_tokens     of the row's request, context and all its decisions; of a route as many as, at
                 the price of all its models, cost the same; null in older files
latency_ms       how long the row's answer took; null where it shared a pass with others
unstated         probability that the context does not say; null for models that cannot tell
decided_by       model of a route, or step of a family's ladder, that decided; null for other models
================ ============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from msgspec import Struct

from steelyard.decisions.wire import Kind
from steelyard.evaluations.measures.records import Records, Supervision, records_from_columns

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
        pa.field("input_tokens", pa.int64()),
        pa.field("latency_ms", pa.float64()),
        pa.field("unstated", pa.float64()),
        pa.field("decided_by", pa.string()),
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
    input_tokens: int
    latency_ms: float | None
    unstated: float | None = None
    decided_by: str | None = None


def records_of(table: pa.Table, supervision: Supervision) -> Records:
    """Return predictions as records."""
    return records_from_columns(
        contexts=table["context_sha256"].to_pylist(),
        decision_ids=table["decision_id"].to_pylist(),
        kinds=table["kind"].to_pylist(),
        outcomes=table["outcomes"].to_pylist(),
        probabilities=list(_vectors(table["probabilities"])),
        labels=list(_vectors(table["labels"])),
        supervision=supervision,
    )


@dataclass(frozen=True, slots=True)
class Effort:
    """Time and tokens of an evaluation's requests: one value a row."""

    latencies_ms: list[float]
    #: ``None`` where a row's were not counted.
    input_tokens: int | None


def effort_of(table: pa.Table) -> Effort:
    """Return time and tokens of requests, from predictions in the order of their rows."""
    _, firsts = np.unique(table["row"].to_numpy(), return_index=True)
    rows = table.select(["latency_ms", "input_tokens"]).take(firsts)
    tokens = rows["input_tokens"]
    return Effort(
        latencies_ms=rows["latency_ms"].drop_null().to_pylist(),
        input_tokens=None if tokens.null_count else sum(tokens.to_pylist()),
    )


def _vectors(column: pa.ChunkedArray) -> Iterator[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    for chunk in column.chunks:
        offsets, values = chunk.offsets.to_numpy(), chunk.values.to_numpy()
        for start, stop in pairwise(offsets.tolist()):
            yield values[start:stop]
