"""Rows to send, from files, lists and frames: JSON Lines in pieces that a server takes.

A frame is anything with ``to_dicts`` (Polars) or ``to_dict`` (pandas); neither package is imported.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.client.calls import plain
from steelyard.client.packed_lines import PackedLines
from steelyard.errors import InvalidRequestError, SteelyardError
from steelyard.wire.json_values import check_json
from steelyard.wire.violations import Violations

#: A piece stays below the most that servers take at once, 16 MiB.
PIECE_BYTES = 15 * 1024 * 1024
#: Fields of a number of an exported row, in its list of targets or rewards.
_EXPORTED = frozenset({"decision", "outcome", "value"})
#: Columns that tell a frame of ``to_polars`` from others.
_OF_EXPORTS = frozenset({"is_text", "images", "extra", "context_sha256"})
_SHOWN_CHARACTERS = 60
_YES_NO = {True: "yes", False: "no"}

#: A file of JSON Lines, its bytes or its lines, rows, or a frame.
Rows = str | os.PathLike[str] | bytes | PackedLines | Iterable[Mapping[str, Any]] | Any

#: Called with the bytes that were moved so far.
Progress = Callable[[int], None]

#: Called with the part of a row that a server refuses, its line there from 0, and the problem.
OnRefused = Callable[[str, int, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameColumns:
    """How the columns of a frame are read as rows: the arguments of ``datasets.create``.

    A struct of the column ``decisions`` cannot tell an outcome without a description from one that is
    not there: its nulls are left out, so give those as JSON.
    """

    context: str | Sequence[str] = "context"
    decisions: Sequence[Mapping[str, Any]] | None = None
    labels: Mapping[str, str] | Sequence[str] | None = None
    targets: str | None = None
    rewards: str | None = None

    def __post_init__(self) -> None:
        """Refuse a column that is named both as the context and as a label: it is its own answer."""
        context = {self.context} if isinstance(self.context, str) else set(self.context)
        numbers = {self.targets, self.rewards} - {None}
        if both := sorted(context.intersection(numbers or self.by_decision().values())):
            raise ValueError(f"The column {both[0]!r} is the context and a label; name it once.")

    def by_decision(self) -> Mapping[str, str]:
        """Return the columns of labels by decision id."""
        if isinstance(self.labels, Mapping):
            return self.labels
        if self.labels is not None:
            return {name: name for name in self.labels}
        return {str(decision["id"]): str(decision["id"]) for decision in self.decisions or ()}


@dataclass(frozen=True, slots=True)
class RowPiece:
    """Some lines of JSON; ``start`` is how many lines are before them."""

    data: bytes
    start: int


def pieces_of(
    rows: Rows, columns: FrameColumns | None = None, piece_bytes: int = PIECE_BYTES
) -> Iterator[RowPiece]:
    """Cut rows into pieces of whole lines, of at most ``piece_bytes``; a longer line is a piece alone.

    A path and bytes hold JSON Lines, which are sent as they are. Raise ``ValueError`` when a frame
    lacks a column.
    """
    lines: list[bytes] = []
    n_bytes = n_lines = start = 0
    for line in _lines(rows, columns or FrameColumns()):
        if lines and n_bytes + len(line) > piece_bytes:
            yield RowPiece(b"".join(lines), start)
            lines, n_bytes, start = [], 0, n_lines
        lines.append(line)
        n_bytes += len(line)
        n_lines += 1
    if lines or not n_lines:
        yield RowPiece(b"".join(lines), start)


def size_of(rows: Rows) -> int | None:
    """Return how many bytes rows are, where that is known before they are read."""
    if isinstance(rows, bytes):
        return len(rows)
    if isinstance(rows, PackedLines):
        return rows.n_bytes
    return Path(rows).stat().st_size if isinstance(rows, str | os.PathLike) else None


def shift_lines(
    details: Sequence[Mapping[str, Any]], start: int | Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return the details of a refusal with the lines of the whole, of which a piece was sent.

    ``start`` is how many lines are before the piece, or before the piece of each part.

    >>> shift_lines([{"path": ["body", "examples", 0, "context"], "message": "Line 1: x."}], 10)
    [{'path': ['body', 'examples', 10, 'context'], 'message': 'Line 11: x.'}]
    """
    shifted = []
    for detail in details:
        path = list(detail.get("path", ()))
        moved = dict(detail)
        if len(path) > 2 and isinstance(path[2], int):
            line = path[2] + 1
            n_before = start if isinstance(start, int) else start.get(path[1], 0)
            path[2] += n_before
            moved["path"] = path
            moved["message"] = str(detail.get("message", "")).replace(
                f"Line {line}:", f"Line {line + n_before}:", 1
            )
        shifted.append(moved)
    return shifted


def shift_refusal(error: SteelyardError, start: int | Mapping[str, int]) -> None:
    """Return the details of a refusal, and its message, the lines of the whole; as ``shift_lines``."""
    if error.details is None:
        return
    shifted = shift_lines(error.details, start)
    for before, after in zip(error.details, shifted, strict=True):
        message = str(before.get("message", ""))
        # The message is that of one of the details, and how many there are.
        if message and error.message.startswith(message):
            error.message = after["message"] + error.message.removeprefix(message)
            error.args = (error.message,)
            break
    error.details = shifted


def _lines(rows: Rows, columns: FrameColumns) -> Iterator[bytes]:
    if isinstance(rows, bytes):
        yield from io.BytesIO(rows)
    elif isinstance(rows, PackedLines):
        yield from rows
    elif isinstance(rows, str | os.PathLike):
        with Path(rows).open("rb") as file:
            yield from file
    else:
        for number, row in enumerate(_dicts(rows, columns)):
            violations = Violations()
            value = plain(row)
            check_json(value, violations, ("body", "examples", number))
            if violations:
                raise InvalidRequestError(
                    violations=violations.listed, n_unlisted=violations.n_unlisted
                )
            yield json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _dicts(rows: Any, columns: FrameColumns) -> Iterator[Mapping[str, Any]]:
    if hasattr(rows, "to_dicts"):
        return _rows_of(rows.to_dicts(), columns, has_structs=True)
    if hasattr(rows, "to_dict") and not isinstance(rows, Mapping):
        names = list(rows.columns)
        if len(set(names)) < len(names):
            name = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Two columns of the frame are named {name!r}; rename one.")
        return _rows_of(rows.to_dict("records"), columns, has_structs=False)
    return iter(rows)


def _rows_of(
    records: Iterable[Mapping[str, Any]], columns: FrameColumns, *, has_structs: bool
) -> Iterator[Mapping[str, Any]]:
    for number, record in enumerate(records, 1):
        yield _row_of(record, columns, number, has_structs=has_structs)


def _row_of(
    record: Mapping[str, Any], columns: FrameColumns, number: int, *, has_structs: bool
) -> dict[str, Any]:
    if isinstance(columns.context, str):
        context = _cell(record, columns.context)
        context = "" if _is_null(context) else context
    else:
        context = {name: _plain_cell(_cell(record, name)) for name in columns.context}
    decisions = columns.decisions
    decision_list = (
        _decisions_of(_cell(record, "decisions"), are_structs=has_structs)
        if decisions is None
        else list(decisions)
    )
    row: dict[str, Any] = {"context": _plain_cell(context)}
    if columns.context == "context" and record.keys() >= _OF_EXPORTS:
        row |= _exported(record)
    if columns.targets is not None or columns.rewards is not None:
        row["decisions"] = decision_list
        for field, column in (("targets", columns.targets), ("rewards", columns.rewards)):
            if column is not None:
                labels = numbers_of(_cell(record, column))
                if labels is None:
                    raise ValueError(
                        f"Row {number} of the frame has no numbers by decision and outcome in "
                        f"column {column!r}: {_shown(record[column])}. Give a mapping, its JSON, or "
                        "what to_polars() gives; leave out rows without."
                    )
                row[field] = {id_: values for id_, values in labels.items() if values}
        return row
    cells = {id_: _cell(record, column) for id_, column in columns.by_decision().items()}
    targets = {id_: _outcome(cell) for id_, cell in cells.items() if not _is_null(cell)}
    row["decisions"] = [
        decision
        for decision in decision_list
        if decision["id"] in targets or decision["id"] not in cells
    ]
    row["targets"] = targets
    return row


def _exported(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return an exported row's fields beside texts: its context's values, images and options."""
    row: dict[str, Any] = {}
    if not record["is_text"]:
        row["context"] = json.loads(record["context"])
    if not _is_null(record["images"]):
        row["images"] = json.loads(record["images"])
    if not _is_null(record["extra"]):
        row |= json.loads(record["extra"])
    return row


def _decisions_of(cell: Any, *, are_structs: bool) -> list[Any]:
    """Return the decisions of a cell: JSON, structs, or objects.

    Structs have every field that one of them has: a null stands for a missing field, or a missing
    outcome. In an object it is an outcome without a description.
    """
    if isinstance(cell, str):
        return list(json.loads(cell))
    if are_structs:
        return [_without_nulls(struct) for struct in cell]
    return [{name: item for name, item in fields.items() if not _is_null(item)} for fields in cell]


def numbers_of(cell: Any) -> dict[str, Any] | None:
    """Return numbers by decision and outcome: of a mapping, of JSON, or of an exported row's list.

    ``None`` for any other value.
    """
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    if not isinstance(cell, Mapping | str) and isinstance(cell, Iterable):
        entries = list(cell)
        if not all(isinstance(entry, Mapping) and entry.keys() >= _EXPORTED for entry in entries):
            return None
        listed: dict[str, dict[str, Any]] = {}
        for entry in entries:
            listed.setdefault(entry["decision"], {})[entry["outcome"]] = entry["value"]
        return listed
    if not isinstance(cell, Mapping):
        return None
    return {str(id_): values for id_, values in _without_nulls(cell).items()}


def _shown(cell: Any) -> str:
    text = "nothing" if _is_null(cell) else repr(cell)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _cell(record: Mapping[str, Any], column: str) -> Any:
    if column not in record:
        listed = ", ".join(map(repr, record))
        raise ValueError(f"The frame has no column {column!r}; it has {listed}.")
    return record[column]


def _outcome(cell: Any) -> str:
    """Return a cell as an outcome's name: booleans are yes and no, and whole numbers levels."""
    if isinstance(cell, bool):
        return _YES_NO[cell]
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _plain_cell(cell: Any) -> Any:
    return None if _is_null(cell) else cell


def _is_null(cell: Any) -> bool:
    # Pandas has NaN, NaT and NA for missing values; none of them equals itself for sure.
    return (
        cell is None
        or (isinstance(cell, float) and math.isnan(cell))
        or type(cell).__name__ in {"NAType", "NaTType"}
    )


def _without_nulls(value: Any) -> Any:
    """Drop the fields that a column of structs has null where a row has none."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if not _is_null(item)}
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    return value
