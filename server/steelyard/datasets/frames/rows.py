"""Rows of a dataset as columns, and as the JSON lines they came from.

=============== =============================================================================
column          holds
=============== =============================================================================
index           its place in the dataset, from 0
line            where it stood in the file or array it came in, from 1
context         the text, or the compact JSON of a context that is no text
is_text         which of the two
decisions       the compact JSON of its decisions
asked           ids of its decisions
labels          per outcome named: decision, outcome, value, and whether it is the expected one
images, extra   compact JSON, where there is any
context_sha256  of the canonical context and images
row_sha256      of everything that tells duplicates
side            training or evaluation
=============== =============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from steelyard.datasets.canonical import compact_json
from steelyard.datasets.labels import SUPERVISION_OF
from steelyard.datasets.rows import Row
from steelyard.datasets.tasks import Task
from steelyard.datasets.wire import SIDES, Side
from steelyard.wire.methods import Method

#: Sides as numbers; 0 stands for none.
SIDE_NUMBERS: dict[Side, int] = {side: number for number, side in enumerate(SIDES, 1)}

_HASH = pa.binary(32)
_LABEL_FIELDS = [
    pa.field("decision", pa.string(), nullable=False),
    pa.field("outcome", pa.string(), nullable=False),
    pa.field("value", pa.float64(), nullable=False),
    pa.field("is_top", pa.bool_(), nullable=False),
]
_LABELS = pa.list_(pa.field("element", pa.struct(_LABEL_FIELDS), nullable=False))
_DECISION_IDS = pa.list_(pa.field("element", pa.string(), nullable=False))
_SENT = [
    pa.field("line", pa.int64(), nullable=False),
    pa.field("context", pa.string(), nullable=False),
    pa.field("is_text", pa.bool_(), nullable=False),
]
_REST = [
    pa.field("labels", _LABELS, nullable=False),
    pa.field("images", pa.string()),
    pa.field("extra", pa.string()),
    pa.field("context_sha256", _HASH, nullable=False),
    pa.field("row_sha256", _HASH, nullable=False),
]

#: Rows as they are read, before their sides are known; ``task`` is a place in a list of tasks, and
#: ``named`` is the number of the side that the sender named, 0 where none was.
STAGED_SCHEMA = pa.schema(
    [
        *_SENT,
        pa.field("task", pa.int32(), nullable=False),
        *_REST,
        pa.field("named", pa.int8(), nullable=False),
    ]
)
#: Rows as they are stored.
STORED_SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        *_SENT,
        pa.field("decisions", pa.string(), nullable=False),
        pa.field("asked", _DECISION_IDS, nullable=False),
        *_REST,
        pa.field("side", pa.string(), nullable=False),
    ]
)
#: What ``encode_rows`` needs.
SENT_COLUMNS = ("context", "is_text", "decisions", "labels", "images", "extra")


def stage_rows(rows: Sequence[Row], tasks: Sequence[int], named: Side | None) -> pa.RecordBatch:
    """Make columns of rows."""
    labels = [row.labels for row in rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(label.values) for label in labels], out=offsets[1:])
    flat = [
        pa.array(list(chain.from_iterable(label.decisions for label in labels)), pa.string()),
        pa.array(list(chain.from_iterable(label.outcomes for label in labels)), pa.string()),
        pa.array(list(chain.from_iterable(label.values for label in labels)), pa.float64()),
        pa.array(list(chain.from_iterable(label.tops for label in labels)), pa.bool_()),
    ]
    entries = pa.StructArray.from_arrays(flat, fields=_LABEL_FIELDS)
    return pa.record_batch(
        [
            pa.array([row.line for row in rows], pa.int64()),
            pa.array([row.context for row in rows], pa.string()),
            pa.array([row.is_text for row in rows], pa.bool_()),
            pa.array(tasks, pa.int32()),
            pa.ListArray.from_arrays(pa.array(offsets), entries, type=_LABELS),
            pa.array([row.images for row in rows], pa.string()),
            pa.array([row.extra for row in rows], pa.string()),
            pa.array([row.context_sha256 for row in rows], _HASH),
            pa.array([row.row_sha256 for row in rows], _HASH),
            pa.repeat(pa.scalar(SIDE_NUMBERS[named] if named else 0, pa.int8()), len(rows)),
        ],
        schema=STAGED_SCHEMA,
    )


def store_rows(staged: pa.Table, indexes: pa.Array, tasks: Sequence[Task], side: str) -> pa.Table:
    """Return staged rows of one side as they are stored, at their places in the dataset."""
    used, places = np.unique(staged["task"].to_numpy(), return_inverse=True)
    place = pa.array(places, pa.int32())
    columns = {name: staged[name] for name in staged.column_names if name not in ("task", "named")}
    columns["index"] = indexes
    columns["decisions"] = pa.array([tasks[task].json for task in used], pa.string()).take(place)
    columns["asked"] = pa.array([tasks[task].ids for task in used], _DECISION_IDS).take(place)
    columns["side"] = pa.repeat(pa.scalar(side, pa.string()), len(staged))
    return pa.table([columns[name] for name in STORED_SCHEMA.names], schema=STORED_SCHEMA)


def encode_rows(table: pa.Table, method: Method) -> Iterator[bytes]:
    """Yield the JSON of stored rows, each on one line and without its line feed."""
    supervision = SUPERVISION_OF[method]
    labels = table["labels"].combine_chunks()
    if isinstance(labels, pa.ChunkedArray):
        labels = pa.concat_arrays(labels.chunks) if labels.num_chunks else pa.array([], _LABELS)
    offsets = labels.offsets.to_pylist()
    entries = labels.values
    flat = zip(
        entries.field("decision").to_pylist(),
        entries.field("outcome").to_pylist(),
        entries.field("value").to_pylist(),
        strict=True,
    )
    flat_labels = list(flat)
    columns = [table[name].to_pylist() for name in SENT_COLUMNS if name != "labels"]
    for row, sent in enumerate(zip(*columns, strict=True)):
        context, is_text, decisions, images, extra = sent
        by_decision: dict[str, dict[str, float]] = {}
        for decision, outcome, value in flat_labels[offsets[row] : offsets[row + 1]]:
            by_decision.setdefault(decision, {})[outcome] = value
        fields = [f'"context":{compact_json(context) if is_text else context}']
        fields.append(f'"decisions":{decisions}')
        if images is not None:
            fields.append(f'"images":{images}')
        fields.append(f'"{supervision}":{compact_json(by_decision)}')
        if extra is not None:
            fields.append(extra[1:-1])
        yield f"{{{','.join(fields)}}}".encode()
