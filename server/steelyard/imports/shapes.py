"""Exports of labelling and evaluation tools, recognised by the names that their objects have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from steelyard.imports.items import table_of_items
from steelyard.imports.objects import Numbered, structure_of
from steelyard.imports.programs import APPROVALS, SHAPES, ExportShape
from steelyard.imports.table import Refused, Row, Table

#: Programs that export tables too, as CSV.
_ANNOTATED = frozenset({"argilla", "label-studio", "prodigy", "doccano", "labelbox"})
#: What reading an object raises whose values are not as they should be.
_MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def read_shape(
    rows: Sequence[Numbered], refused: list[Refused], read_as: str, name: str | None = None
) -> Table | None:
    """Return a known program's rows as a table, else ``None``; ``ValueError`` when it is not ``name``."""
    if name is not None and name not in SHAPES:
        raise ValueError(f"{name!r} is not a known program; use one of {', '.join(SHAPES)}.")
    if not rows:
        return None
    sample = [row for _, row in rows[:20]]
    program = program_of(sample, name)
    if program is None:
        if name is None:
            return None
        raise ValueError(
            f"The file is not an export of {SHAPES[name].title}: its objects have "
            f"{', '.join(map(str, sample[0]))}. Leave --from out to read it as a table."
        )
    shape = SHAPES[program]
    readable, unreadable = _sort_out(shape, rows)
    title = f"{read_as}, an export of {shape.title}"
    lines = sorted([*refused, *unreadable], key=lambda line: line.line)
    return table_of_items(list(shape.read(readable)), lines, title)


def as_export(table: Table, name: str | None = None) -> Table:
    """Return a table that a known program exported as its items, others as they are; refuses as ``read_shape``."""
    if table.hints is not None or not table.rows:
        return table

    def objects(rows: Sequence[Row]) -> list[Numbered]:
        return [
            (line, dict(zip(table.columns, map(structure_of, cells), strict=True)))
            for line, cells in rows
        ]

    lists = _joined_labels(table, is_named=name is not None) if name in (None, "doccano") else {}
    sample = [row for _, row in objects(table.rows[:20])]
    program = name or ("doccano" if lists else program_of(sample))
    # Other programs' columns may be those of any table, but for one that Langfuse alone has.
    is_theirs = program in _ANNOTATED or "expectedOutput" in table.columns
    if program is None or (name is None and not is_theirs):
        return table
    rows = objects(table.rows)
    for _, row in rows if lists else ():
        column = "label" if "label" in row else "labels"
        row[column] = lists.get(row[column], [])
    read = read_shape(rows, table.refused, table.read_as, program)
    return table if read is None else replace(read, notes=[*table.notes, *read.notes])


def program_of(rows: Sequence[dict[str, Any]], name: str | None = None) -> str | None:
    """Return the program that exports such objects, of the known ones or the named one.

    The named one needs one object that it exports: others are left out.
    """
    if name is not None:
        return name if any(map(SHAPES[name].matches, rows)) else None
    return next((name for name in SHAPES if rows and all(map(SHAPES[name].matches, rows))), None)


def _sort_out(shape: ExportShape, rows: Sequence[Numbered]) -> tuple[list[Numbered], list[Refused]]:
    """Return the objects that a program exports, and the others with why they are left out."""
    matching = [numbered for numbered in rows if shape.matches(numbered[1])]
    readable = matching
    try:
        list(shape.read(matching))
    except _MISSHAPEN:
        readable = [numbered for numbered in matching if _is_readable(shape, numbered)]
    taken = {number for number, _ in readable}
    reason = f"It is no object as {shape.title} exports it."
    return readable, [
        Refused(number, reason, (json.dumps(row, ensure_ascii=False, default=str),))
        for number, row in rows
        if number not in taken
    ]


def _is_readable(shape: ExportShape, numbered: Numbered) -> bool:
    try:
        list(shape.read([numbered]))
    except _MISSHAPEN:
        return False
    return True


def _joined_labels(table: Table, *, is_named: bool) -> dict[Any, list[str]]:
    """Return the labels that each cell means in CSV, in which the program joins them by ``#``."""
    column = next((name for name in ("label", "labels") if name in table.columns), None)
    if column is None or "id" not in table.columns or not {"text", "data"} & {*table.columns}:
        return {}
    values = {cell for cell in table.column(column) if isinstance(cell, str)}
    parts = {value: value.split("#") for value in values if not value.startswith("[")}
    counts = Counter(part for names in parts.values() for part in names)
    joined = {value for value, names in parts.items() if len(names) > 1 and all(names)}
    is_alike = is_named or not {*APPROVALS}.isdisjoint(table.columns)
    if not is_alike and not any(counts[name] > 1 for value in joined for name in parts[value]):
        return {}
    return {value: names if value in joined else [value] for value, names in parts.items()}
