"""Rows of a table that a server refused, with their places in the file."""

from __future__ import annotations

from array import array
from collections.abc import Mapping as Dict
from dataclasses import replace
from typing import Any

from steelyard.client.tables.mapping import Converted, Mapping
from steelyard.imports.tables import Refused, Table


class ServerRefusals:
    """Collects what a server refuses of a table's rows: ``on_refused`` of ``datasets.create``."""

    def __init__(self, table: Table, mapping: Mapping, made: Converted) -> None:
        self._table, self._mapping, self.made = table, mapping, made
        self._rows: dict[int, list[str]] = {}

    def __call__(self, part: str, line: int, problem: Dict[str, Any]) -> None:
        """Note a problem of a row."""
        number = self._places_of(part)[line]
        _, _, reason = str(problem.get("message", "")).partition(": ")
        columns = self._columns_of(list(problem.get("path", ()))[3:])
        self._rows.setdefault(number, []).append(f"{columns}: {reason}" if columns else reason)

    def without_sides(self) -> ServerRefusals:
        """Return what collects the refusals of the same rows, all on one side."""
        return ServerRefusals(self._table, self._mapping, replace(self.made, sides=None))

    @property
    def rows(self) -> list[Refused]:
        """The rows that were refused, in the order of the file."""
        files = [part.file for part in self._table.row_parts()] if self._table.parts else []
        refused = []
        for number, reasons in sorted(self._rows.items()):
            line, cells = self._table.rows[number]
            reason = " ".join(dict.fromkeys(reasons))
            refused.append(Refused(line, reason, cells, files[number] if files else ""))
        return refused

    def _places_of(self, part: str) -> array[int]:
        if self.made.sides is None:
            return self.made.places
        pairs = zip(self.made.sides, self.made.places, strict=True)
        return array("q", (place for side, place in pairs if side == part))

    def _columns_of(self, path: list[Any]) -> str:
        """Return the columns that a field of a row was made of."""
        if path[:1] == ["context"]:
            return ", ".join(self._mapping.context)
        ids = path[1:2]
        return next(
            (label.column for label in self._mapping.labels if set(ids) & set(label.ids)), ""
        )
