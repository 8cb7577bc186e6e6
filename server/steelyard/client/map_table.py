"""The points of a map as a table: rows, coordinates and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from steelyard.client.saving import export_file
from steelyard.exports import Column, ExportTable, export_pieces
from steelyard.exports.table import Batches
from steelyard.maps.wire import OTHER, MapPoints, MapValues
from steelyard.wire.queries import ExportFormat

_OTHER = "(other)"
_AT_ONCE = 10_000


def write_points(
    points: MapPoints, values: MapValues | None, path: Path, format_: ExportFormat, *, force: bool
) -> Path:
    """Write a map's points and their values to a file; return its path."""
    with export_file(path, format_, force=force) as file:
        for piece in export_pieces(table_of(points, values), format_):
            file.write(piece)
    return path


def table_of(points: MapPoints, values: MapValues | None) -> ExportTable:
    """Return a map's points as a table, with a decision's labels and answers where they are given."""
    sides = ("training", "evaluation")
    columns: list[tuple[Column, Sequence[object]]] = [
        (Column("index", pa.int64(), "The row's place in the dataset, from 0."), points.index),
        (
            Column("side", pa.string(), "Training or evaluation.", sides),
            [sides[is_evaluation] for is_evaluation in points.is_evaluation],
        ),
        (Column("x", pa.float64(), "Across, -1 to 1."), points.x),
        (Column("y", pa.float64(), "Up, -1 to 1."), points.y),
        (Column("text", pa.string(), "How the context begins."), points.text),
    ]
    if values is not None:
        names = (*values.outcomes, _OTHER)
        columns.append(
            (
                Column(
                    "expected", pa.string(), f"What the row expects of {values.decision}.", names
                ),
                _named(values.expected, values.outcomes),
            )
        )
        if values.answered is not None:
            columns += [
                (
                    Column("answered", pa.string(), "What the evaluation's model answered.", names),
                    _named(values.answered, values.outcomes),
                ),
                (Column("is_right", pa.bool_(), "Whether that was right."), values.is_right or []),
                (
                    Column("confidence", pa.float64(), "The probability of what was answered."),
                    values.confidence or [],
                ),
            ]
    table = pa.table({of.name: pa.array(cells, of.type) for of, cells in columns})
    return ExportTable(
        title=f"Map {points.map}",
        about="Rows of a dataset as points: rows whose contexts are alike lie near each other.",
        columns=tuple(of for of, _ in columns),
        rows=_batches(table),
        splits={side: _batches(table.filter(pc.equal(table["side"], side))) for side in sides},
    )


def _batches(table: pa.Table) -> Callable[[], Batches]:
    return lambda: iter(table.to_batches(max_chunksize=_AT_ONCE))


def _named(places: Sequence[int], outcomes: Sequence[str]) -> list[str | None]:
    """Return outcomes by their places; none where there is none."""
    return [
        outcomes[place] if place >= 0 else _OTHER if place == OTHER else None for place in places
    ]
