"""Tables that Steelyard exported a dataset as: read back as the rows that they were."""

from __future__ import annotations

import json
from typing import Any

from steelyard.client.row_sources import numbers_of
from steelyard.client.tables.converted import Converted
from steelyard.client.tables.mapping import training_left_out
from steelyard.datasets.wire import SIDES, Side
from steelyard.imports.table import Refused, Table

#: Columns that tell a dataset's export from other tables.
_COLUMNS = frozenset({"index", "side", "context", "is_text", "decisions", "images", "extra"})
_SUPERVISIONS = ("targets", "rewards")


def is_exported(table: Table) -> bool:
    """Return whether a table is an export of a dataset."""
    named = set(table.columns)
    return named >= _COLUMNS and not named.isdisjoint(_SUPERVISIONS)


def read_exported(table: Table, *, for_evaluation: bool = False) -> Converted:
    """Return the rows of an export, on their sides; one that was changed into none is refused.

    ``for_evaluation`` leaves the rows of training out, where there are others.
    """
    sides: list[Side] = []
    n_training = 0
    is_left_out = for_evaluation and "evaluation" in table.column("side")
    made = Converted(table, refused=list(table.refused), sides=sides)
    for number, (line, cells) in enumerate(table.rows):
        record = dict(zip(table.columns, cells, strict=True))
        try:
            side, row = _row(record)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            reason = f"It is not as it was exported ({error}); export the dataset again."
            made.refused.append(Refused(line, reason, cells))
            continue
        if is_left_out and side == "training":
            n_training += 1
            continue
        made.lines.append(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        )
        made.places.append(number)
        sides.append(side)
    if n_training:
        made.notes.append(training_left_out(n_training))
    return made


def _row(record: dict[str, Any]) -> tuple[Side, dict[str, Any]]:
    side = next((side_name for side_name in SIDES if side_name == record["side"]), None)
    if side is None:
        raise ValueError(f"side is {record['side']!r}")
    # An empty text and no text are one in CSV.
    context = "" if record["context"] is None else record["context"]
    is_text = record["is_text"] in {True, "true"}
    row: dict[str, Any] = {
        "context": context if is_text else json.loads(context),
        "decisions": json.loads(record["decisions"]),
    }
    if record["images"] is not None:
        row["images"] = json.loads(record["images"])
    for name in _SUPERVISIONS:
        if record.get(name) is not None:
            labels = numbers_of(record[name])
            if labels is None:
                raise ValueError(f"{name} are no numbers by decision and outcome")
            row[name] = labels
    if record["extra"] is not None:
        row |= json.loads(record["extra"])
    return side, row
