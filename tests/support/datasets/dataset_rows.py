"""Rows of datasets to start a test from, strategies for them, and versions made of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from steelyard.datasets.frames.writing import VersionWriter
from steelyard.datasets.ingest import RowReader
from steelyard.datasets.rows import Row
from steelyard.datasets.versions import Manifest
from steelyard.storage.frame_store import FrameStore
from support.decisions.strategies import json_containers, texts

ROUTE = {
    "id": "route",
    "question": "Who should own this?",
    "outcomes": {"billing": "Money already taken", "support": None, "other": None},
}
REFUND = {"id": "refund", "kind": "binary", "question": "Does the writer want money back?"}
URGENCY = {
    "id": "urgency",
    "kind": "ordinal",
    "question": "How urgent is it?",
    "outcomes": ["1", "3", "5"],
    "rubric": ["can wait", "this week", None],
}
DECISIONS = (ROUTE, REFUND, URGENCY)
OUTCOMES = {"route": ["billing", "support", "other"], "refund": ["yes", "no"]}
OUTCOMES["urgency"] = ["1", "3", "5"]


def make_row_dict(context: Any = "Invoice 118 was paid twice.", **fields: Any) -> dict[str, Any]:
    """A valid row with targets; a field given as ``...`` is left out."""
    row: dict[str, Any] = {
        "context": context,
        "decisions": copy.deepcopy([ROUTE, REFUND]),
        "targets": {"route": {"billing": 1.0}, "refund": "yes"},
    }
    row.update(fields)
    return {name: value for name, value in row.items() if value is not ...}


def make_rows(n_rows: int, start: int = 0) -> list[dict[str, Any]]:
    """Valid rows, each with its own context; labels change from row to row."""
    return [
        make_row_dict(
            f"Invoice {number} was paid twice.",
            targets={"route": OUTCOMES["route"][number % 3], "refund": ["yes", "no"][number % 2]},
        )
        for number in range(start, start + n_rows)
    ]


def to_ndjson(rows: Iterable[dict[str, Any]], **options: Any) -> bytes:
    """JSON Lines of rows."""
    return b"".join(json.dumps(row, **options).encode() + b"\n" for row in rows)


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """A stream cut into chunks of these sizes, again and again."""
    chunks, start, turn = [], 0, 0
    while start < len(data):
        size = sizes[turn % len(sizes)]
        chunks.append(data[start : start + size])
        start, turn = start + size, turn + 1
    return chunks


def read_all(
    data: bytes, reader: RowReader | None = None, sizes: Sequence[int] = (64,)
) -> list[Row]:
    """Every valid row of JSON Lines."""
    reader = reader or RowReader()
    return [row for rows in reader.read_ndjson(cut(data, sizes)) for row in rows]


def write_version(
    store: FrameStore,
    rows: Sequence[dict[str, Any]] = (),
    *,
    previous: Manifest | None = None,
    dataset_id: str = "ds_1",
    sides: dict[Any, Sequence[dict[str, Any]]] | None = None,
    data: bytes | None = None,
    sizes: Sequence[int] = (1000,),
    **options: Any,
) -> Manifest:
    """Make a version of rows, by ``data`` as JSON Lines, or by ``sides``."""
    reader = RowReader()
    with VersionWriter(store, dataset_id, previous) as writer:
        if sides is None:
            data = to_ndjson(rows) if data is None else data
            writer.add(read_all(data, reader, sizes))
        for side, items in (sides or {}).items():
            writer.add(read_all(to_ndjson(items), reader), side)
        assert reader.findings.listed == []
        return writer.finish(**options)


@st.composite
def target_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A valid row with targets of any form."""
    asked = draw(st.lists(st.sampled_from(DECISIONS), min_size=1, unique_by=lambda one: one["id"]))
    labelled = draw(st.lists(st.sampled_from(asked), min_size=1, unique_by=lambda one: one["id"]))
    targets: dict[str, Any] = {}
    for decision in labelled:
        names = OUTCOMES[decision["id"]]
        first, second = draw(st.permutations(names))[:2]
        share = draw(st.sampled_from([1, 1.0, 0.5, 0.75, 0]))
        soft = {first: share, second: 1 - share}
        targets[decision["id"]] = draw(st.sampled_from([first, {first: 1}, {first: 1.0}, soft]))
    context = draw(st.sampled_from(["", "a", "b", {"n": 1}, {"n": 2}]) | texts | json_containers)
    row = {"context": context, "decisions": copy.deepcopy(asked), "targets": targets}
    if draw(st.booleans()):
        row["metadata"] = draw(st.dictionaries(st.text(max_size=3), texts, max_size=2))
        row["store"] = draw(st.booleans())
    return row
