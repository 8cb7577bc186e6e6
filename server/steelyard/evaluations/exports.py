"""Scored decisions as a table to export: a row for each decision of each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.evaluations.measures.records import IndexArray, RecordMeasures, Records
from steelyard.exports import Column, ExportTable

#: Decisions that are made rows of at a time, with their contexts.
_AT_A_TIME = 256
_TEXT, _NUMBER = pa.string(), pa.float64()
_NUMBERS = pa.list_(pa.struct([("outcome", _TEXT), ("value", _NUMBER)]))
#: What each measure says of one decision.
_MEASURES = {
    "accuracy": "1 where the top outcome is the right one",
    "loss": "cross-entropy against the targets, in nats",
    "brier": "squared error summed over outcomes",
    "expected_reward": "mean reward under the probabilities",
    "scaled_reward": "the same with the worst outcome at 0 and the best at 1",
    "picked_best": "1 where the top outcome earns the most",
}
#: Contexts by the places of their rows.
ReadContexts = Callable[[Collection[int]], Mapping[int, Any]]


def export_table(
    records: Records,
    measures: RecordMeasures,
    rows: NDArray[np.int64],
    indexes: IndexArray,
    read_contexts: ReadContexts,
    *,
    title: str,
) -> ExportTable:
    """Return the records at some places, in their order, as a table to export.

    ``rows`` has for each record the place of its row among the evaluation rows.
    """
    lists = [records.outcome_lists[code] for code in np.unique(records.outcome_codes[indexes])]
    # A class of no names is none: of no records they are texts.
    outcomes = tuple(dict.fromkeys(name for names in lists for name in names)) or None
    columns = (
        Column("row", pa.int64(), "place of the row among the evaluation rows, from 0"),
        Column("context_sha256", _TEXT, "hash of the context and its images"),
        Column("context", _TEXT, "the text, or the JSON of a context that is no text"),
        Column("is_text", pa.bool_(), "which of the two"),
        Column("decision_id", _TEXT, "which decision"),
        Column("kind", _TEXT, "single, binary or ordinal"),
        Column("target", _TEXT, f"the right outcome, of {records.supervision}", outcomes),
        Column("top", _TEXT, "the outcome with the largest probability", outcomes),
        Column("p_top", _NUMBER, "its probability"),
        Column("probabilities", _NUMBERS, "of each outcome"),
        Column(records.supervision, _NUMBERS, "of each outcome"),
        *(Column(name, _NUMBER, _MEASURES[name]) for name in measures.values),
    )
    schema = pa.schema([pa.field(one.name, one.type) for one in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(indexes), _AT_A_TIME):
            chosen = indexes[start : start + _AT_A_TIME].tolist()
            contexts = read_contexts({int(rows[index]) for index in chosen})
            made = [
                _row(records, measures, index, int(rows[index]), contexts.get(int(rows[index])))
                for index in chosen
            ]
            yield pa.RecordBatch.from_pylist(made, schema=schema)

    return ExportTable(
        title=title,
        about=f"{len(indexes)} decisions that an evaluation of Steelyard scored.",
        columns=columns,
        rows=batches,
        splits={"test": batches},
    )


def _row(
    records: Records, measures: RecordMeasures, index: int, row: int, context: Any
) -> dict[str, Any]:
    names = records.outcomes_of(index)
    is_text = isinstance(context, str)
    return {
        "row": row,
        "context_sha256": records.contexts[index],
        "context": context if is_text else msgspec.json.encode(context).decode(),
        "is_text": is_text,
        "decision_id": records.decision_ids[index],
        "kind": records.kinds[index],
        "target": names[int(measures.truth[index])],
        "top": names[int(measures.top[index])],
        "p_top": float(measures.p_top[index]),
        "probabilities": _numbers(names, records.probabilities_of(index).tolist()),
        records.supervision: _numbers(names, records.labels_of(index).tolist()),
        **{
            name: float(column[index]) if measures.counted[name][index] else None
            for name, column in measures.values.items()
        },
    }


def _numbers(names: tuple[str, ...], values: list[float]) -> list[dict[str, Any]]:
    return [{"outcome": name, "value": value} for name, value in zip(names, values, strict=True)]
