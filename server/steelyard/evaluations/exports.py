"""Scored decisions as a table to export: a row for each decision of each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.evaluations.measures.records import (
    IndexArray,
    RecordMeasures,
    Records,
    Supervision,
)
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


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some records, the places of their rows among the evaluation rows, and which are exported."""

    records: Records
    measures: RecordMeasures
    rows: NDArray[np.int64]
    indexes: IndexArray

    def outcomes(self) -> tuple[str, ...] | None:
        """Return the outcomes that its records offer; ``None`` of no records."""
        lists = [
            self.records.outcome_lists[code]
            for code in np.unique(self.records.outcome_codes[self.indexes])
        ]
        return tuple(dict.fromkeys(name for names in lists for name in names)) or None


def export_table(
    pieces: Callable[[], Iterator[Piece]],
    read_contexts: ReadContexts,
    *,
    supervision: Supervision,
    measured: Collection[str],
    outcomes: tuple[str, ...] | None,
    title: str,
    about: str,
) -> ExportTable:
    """Return the records of pieces, in their order, as a table to export.

    ``measured`` names the measures of each record. Without ``outcomes`` outcomes are texts,
    and no classes.
    """
    columns = (
        Column("row", pa.int64(), "place of the row among the evaluation rows, from 0"),
        Column("context_sha256", _TEXT, "hash of the context and its images"),
        Column("context", _TEXT, "the text, or the JSON of a context that is no text"),
        Column("is_text", pa.bool_(), "which of the two"),
        Column("decision_id", _TEXT, "which decision"),
        Column("kind", _TEXT, "single, binary or ordinal"),
        Column("target", _TEXT, f"the right outcome, of {supervision}", outcomes),
        Column("top", _TEXT, "the outcome with the largest probability", outcomes),
        Column("p_top", _NUMBER, "its probability"),
        Column("probabilities", _NUMBERS, "of each outcome"),
        Column(supervision, _NUMBERS, "of each outcome"),
        *(Column(name, _NUMBER, _MEASURES[name]) for name in measured),
    )
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in pieces():
            for start in range(0, len(piece.indexes), _AT_A_TIME):
                chosen = piece.indexes[start : start + _AT_A_TIME].tolist()
                places = [int(piece.rows[index]) for index in chosen]
                contexts = read_contexts(set(places))
                made = [
                    _row(piece.records, piece.measures, index, place, contexts.get(place))
                    for index, place in zip(chosen, places, strict=True)
                ]
                yield pa.RecordBatch.from_pylist(made, schema=schema)

    return ExportTable(
        title=title, about=about, columns=columns, rows=batches, splits={"test": batches}
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
