"""The rows of a file as they are sent, and those that are left out: unreadable, or refused by a server."""

from __future__ import annotations

from array import array
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from steelyard.client.packed_lines import PackedLines
from steelyard.client.tables.labels import Label
from steelyard.imports.encodings import Source, find_encoding
from steelyard.imports.objects import json_lines
from steelyard.imports.splits import Side
from steelyard.imports.table import Refused, Table


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which columns are the context, which are labels, and which are kept as metadata.

    ``split`` names the column that says of which split a row is: test and validation are the
    evaluation side.
    """

    context: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    metadata: tuple[str, ...] = ()
    split: str | None = None

    def __post_init__(self) -> None:
        """Rename decisions whose columns differ only in characters that ids do not allow."""
        taken: set[str] = set()
        labels = []
        for label in self.labels:
            named, n = label, 1
            while not taken.isdisjoint(named.ids):
                n += 1
                named = replace(label, id=f"{label.id}_{n}")
            taken |= set(named.ids)
            labels.append(named)
        object.__setattr__(self, "labels", tuple(labels))


@dataclass(frozen=True, slots=True)
class Converted:
    """The rows of a file; called with the server's refusals, as ``on_refused``."""

    #: What the file has.
    table: Table
    #: What its columns mean; nothing where rows have their decisions already.
    mapping: Mapping = field(default_factory=Mapping)
    #: JSON Lines, a row each, as ``datasets.create`` takes them.
    lines: PackedLines = field(default_factory=PackedLines)
    #: Rows that are left out, with the reason.
    refused: list[Refused] = field(default_factory=list)
    #: Rows left out for an empty context; rows that say the same as an earlier one, which a server
    #: leaves out itself.
    n_empty: int = 0
    n_duplicates: int = 0
    #: The side of each row, where the file says it.
    sides: list[Side] | None = None
    #: What a user should know of the sides.
    notes: list[str] = field(default_factory=list)
    #: Places in ``lines`` to people's answers on the row, as ``drafts.import_answers`` takes
    #: them, where the file has their names or notes.
    replies: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    #: Number in the table's rows of each line.
    places: array[int] = field(default_factory=lambda: array("q"))
    _reasons: dict[int, list[str]] = field(default_factory=dict)

    def __call__(self, part: str, line: int, problem: Dict[str, Any]) -> None:
        """Note a refused row: its side or part, its line there from 0, and the problem."""
        number = self._places_of(part)[line]
        _, _, reason = str(problem.get("message", "")).partition(": ")
        column = self._columns_of(list(problem.get("path", ()))[3:])
        self._reasons.setdefault(number, []).append(f"{column}: {reason}" if column else reason)

    @property
    def refused_by_server(self) -> list[Refused]:
        """The rows that a server refused, in the order of the file."""
        files = self.files
        refused = []
        for number, reasons in sorted(self._reasons.items()):
            reason = " ".join(dict.fromkeys(reasons))
            line, cells = self.row_at(number)
            refused.append(Refused(line, reason, cells, files[number] if files else ""))
        return refused

    @property
    def files(self) -> list[str]:
        """The file of each row of the table, of a table of several."""
        return [part.file for part in self.table.row_parts()] if self.table.parts else []

    def row_at(self, number: int) -> tuple[int, Sequence[Any]]:
        """Return the line and the cells of a row of the table, or of a file of lines."""
        if self.table.rows:
            return self.table.rows[number]
        return number + 1, [self.lines[number].decode().rstrip("\n")]

    @property
    def n_rows(self) -> int:
        """How many rows can be sent."""
        return sum(line != b"\n" for line in self.lines)

    @property
    def data(self) -> bytes:
        """The rows as one file."""
        return b"".join(self.lines)

    @property
    def parts(self) -> PackedLines | dict[str, PackedLines]:
        """The rows as ``datasets.create`` takes them: by side, where the file says it."""
        if self.sides is None:
            return self.lines
        by_side: dict[str, PackedLines] = {}
        for side, line in zip(self.sides, self.lines, strict=True):
            by_side.setdefault(side, PackedLines()).append(line)
        return by_side

    def without_sides(self) -> Converted:
        """Return the same rows, all on one side."""
        return replace(self, sides=None)

    def under_license(self, text: str) -> Converted:
        """Return the same rows with a licence in the metadata of each that names none."""
        lines = PackedLines()
        for line in self.lines:
            if line != b"\n":
                row = msgspec.json.decode(line)
                metadata = row.get("metadata")
                if metadata is None or isinstance(metadata, dict):
                    row["metadata"] = {"license": text, **(metadata or {})}
                    line = msgspec.json.encode(row) + b"\n"  # noqa: PLW2901
            lines.append(line)
        return replace(self, lines=lines)

    def _places_of(self, part: str) -> array[int]:
        if self.sides is None:
            return self.places
        pairs = zip(self.sides, self.places, strict=True)
        return array("q", (place for side, place in pairs if side == part))

    def _columns_of(self, path: list[Any]) -> str:
        """Return the columns that a field of a row was made of."""
        if path[:1] == ["context"]:
            return ", ".join(self.mapping.context)
        ids = set(path[1:2])
        return next((label.column for label in self.mapping.labels if ids & set(label.ids)), "")


def read_lines(source: Source, encoding: str | None = None) -> Converted:
    """Return rows that have their decisions already: JSON Lines, as UTF-8 and sent as they are written.

    Lines that are left out stay as empty ones, so that a server counts the lines of the file.

    Raise ``ValueError`` when the encoding is not certain, or not the one that was given.
    """
    opened = find_encoding(source, encoding)
    made = Converted(Table(("row",), (), read_as=f"JSON Lines, {opened.name}"))
    for row in json_lines(source, opened, is_raw=True):
        number = row.line if isinstance(row, Refused) else row[0]
        while len(made.lines) < number - 1:
            made.lines.append(b"\n")
        if isinstance(row, Refused):
            made.refused.append(row)
        else:
            made.lines.append(msgspec.json.encode(row[1]) + b"\n")
    made.places.extend(range(len(made.lines)))
    return made
