"""A table: named columns, rows with their places in a file, and the rows that cannot be used."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, overload

import pyarrow as pa

from steelyard.imports.unpacked import CELL_BYTES

#: A row: its line in the file, or its number from 1, and its cells.
Row = tuple[int, list[Any]]

#: Rows, cells and characters that are texts of Python at one time.
_CHUNK_ROWS, _CHUNK_CELLS, _CHUNK_CHARACTERS = 8_192, 1 << 19, 1 << 24
#: Rows at the start in which the names of the columns are looked for.
SAMPLE_RECORDS = 50
_MOST_SHOWN, _MOST_LISTED = 80, 5
#: Characters of the name of a column, in a file that may have none.
_LONGEST_NAME = 40
#: What SurveyMonkey has below questions of a text, and of one choice.
_KINDS_OF_ANSWERS = {"Open-Ended Response", "Response"}
#: What stands below the names in tables of Markdown.
_DASHES = re.compile(r":?-{3,}:?")


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that cannot be imported, with its unchanged ``cells``.

    ``line`` is a line of the file, or the row's number from 1; ``file`` names one of several.
    ``by_program``: the program that wrote the file says so, as it is unlabelled or was discarded.
    """

    line: int
    reason: str
    cells: Sequence[Any]
    file: str = ""
    by_program: bool = False

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.file}, line {self.line}" if self.file else f"line {self.line}"

    @property
    def sentence(self) -> str:
        """Where it is, and why it cannot be imported."""
        return f"{self.place if self.file else f'Line {self.line}'}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TablePart:
    """Rows of a table from a place on that are of one file, and perhaps of one side."""

    start: int
    file: str = ""
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Hints:
    """The meaning of columns, where the program that wrote them says it."""

    context: tuple[str, ...]
    labels: tuple[str, ...]
    metadata: tuple[str, ...]
    #: What a label's column asks, where the program says more than its name.
    instructions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's answer to a row: by column, with a note beside it."""

    by: str
    answers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Table:
    """The content of a file.

    ``rows`` are the line and the cells of each; ``refused`` are rows that are none of the table.
    ``notes`` are remarks to the user on how it was read. ``parts`` say where the rows of each file
    begin, if there are several, or they are of splits. ``hints`` and ``replies`` are the columns'
    roles and people's answers on each row, of a program's export. ``raters`` are columns with the
    answers of one person each, which another column has as shares.
    """

    columns: tuple[str, ...]
    rows: Sequence[Row]
    refused: list[Refused] = field(default_factory=list)
    read_as: str = ""
    notes: list[str] = field(default_factory=list)
    parts: tuple[TablePart, ...] = ()
    hints: Hints | None = None
    replies: Sequence[list[Reply]] = ()
    raters: tuple[str, ...] = ()

    def column(self, name: str) -> Iterator[Any]:
        """Yield the cells of a column, by row."""
        place = self.columns.index(name)
        if isinstance(self.rows, ArrowRows):
            return self.rows.column(place)
        return (cells[place] for _, cells in self.rows)

    def row_parts(self) -> Iterator[TablePart]:
        """Yield the part of each row."""
        ends = [part.start for part in self.parts[1:]] + [len(self.rows)]
        for part, end in zip(self.parts, ends, strict=True):
            for _ in range(part.start, end):
                yield part


class ArrowRows(Sequence[Row]):
    """Rows in columns, which take little more memory than their characters.

    ``lines`` count from 1 where they are left out; ``convert`` has converters of columns by their
    places.
    """

    def __init__(
        self,
        table: pa.Table,
        lines: pa.ChunkedArray | None = None,
        convert: Mapping[int, Callable[[Any], Any]] | None = None,
    ) -> None:
        self._table, self._lines, self._convert = table, lines, dict(convert or {})

    def column(self, place: int) -> Iterator[Any]:
        """Yield the cells of a column."""
        cells = (
            part.to_pylist()
            for chunk in self._table.column(place).chunks
            for part in _slices(chunk, _rows_together(chunk, 1))
        )
        convert = self._convert.get(place)
        every = chain.from_iterable(cells)
        return every if convert is None else map(convert, every)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows."""
        n_together = _rows_together(self._table, self._table.num_columns)
        start = 0
        for batch in self._table.to_batches(max_chunksize=n_together):
            columns = [cells.to_pylist() for cells in batch.columns]
            for place, convert in self._convert.items():
                columns[place] = list(map(convert, columns[place]))
            end = start + batch.num_rows
            lines: Iterable[int] = (
                range(start + 1, end + 1)
                if self._lines is None
                else self._lines.slice(start, batch.num_rows).to_pylist()
            )
            yield from zip(lines, map(list, zip(*columns, strict=True)), strict=True)
            start = end

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Return a row, or some."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        cells = [column[place].as_py() for column in self._table.columns]
        for number, convert in self._convert.items():
            cells[number] = convert(cells[number])
        return place + 1 if self._lines is None else self._lines[place].as_py(), cells


def text_rows(rows: Iterable[Row], n_columns: int) -> ArrowRows:
    """Return rows of texts in columns."""
    schema = pa.schema([("line", pa.int64())] + [(str(n), pa.string()) for n in range(n_columns)])
    batches = []
    for chunk in _chunks(rows, n_columns):
        lines, texts = zip(*chunk, strict=True)
        columns = [lines, *zip(*texts, strict=True)]
        arrays = [
            pa.array(cells, type_) for cells, type_ in zip(columns, schema.types, strict=True)
        ]
        batches.append(pa.record_batch(arrays, schema))
    table = pa.Table.from_batches(batches, schema)
    return ArrowRows(table.drop_columns("line"), table["line"])


def _chunks(rows: Iterable[Row], n_columns: int) -> Iterator[list[Row]]:
    """Yield some rows at a time: cells are texts of Python until they are packed."""
    n_together = max(1, min(_CHUNK_ROWS, _CHUNK_CELLS // max(n_columns, 1)))
    chunk: list[Row] = []
    n_characters = 0
    for row in rows:
        chunk.append(row)
        n_characters += sum(map(len, filter(None, row[1])))
        if len(chunk) >= n_together or n_characters >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, n_characters = [], 0
    if chunk:
        yield chunk


def _rows_together(cells: pa.Array | pa.Table, n_columns: int) -> int:
    """Return how many rows are objects of Python at a time: the values of a list are many objects."""
    n_most = _CHUNK_CELLS // max(n_columns, cells.nbytes // max(len(cells), 1) // CELL_BYTES, 1)
    return int(max(1, min(_CHUNK_ROWS, n_most)))


def _slices(array: pa.Array, n_rows: int) -> Iterator[pa.Array]:
    for start in range(0, len(array), n_rows):
        yield array.slice(start, n_rows)


@dataclass(frozen=True, slots=True)
class Header:
    """The names of columns, the records above them (-1 where none has names), and remarks to the user."""

    columns: tuple[str, ...]
    n_above: int
    notes: list[str]


def find_header(
    records: Sequence[tuple[int, Sequence[str | None]]], *, has_names: bool | None = None
) -> Header | None:
    """Return the names of the columns, given the first records of a table; ``None`` without any.

    A title stands above the names where it fills one cell, or less than half as many as most of
    the records below. ``has_names`` says whether the first record is of names, where a user knows it:
    it is none if it has a long text and a cell that its column has again.
    """
    if not records:
        return None
    if has_names is False or (has_names is None and _is_row(records)):
        width = Counter(len(cells) for _, cells in records).most_common(1)[0][0]
        columns, _ = unique_names([""] * width)
        note = (
            f"Line {records[0][0]} is a row: the columns have no names, and are called {columns[0]}"
        )
        return Header(columns, -1, [f"{note} to {width} (--header where it has their names)."])
    counts = [sum(1 for cell in cells if cell and cell.strip()) for _, cells in records]
    usual = Counter(counts[1:] or counts).most_common(1)[0][0]
    n_above = 0
    if usual > 1 and _is_title(records[0][1], counts[0], usual):
        n_above = next(
            (
                place
                for place, n_filled in enumerate(counts)
                if n_filled > 1 and n_filled * 2 > usual and _may_be_names(records, place, usual)
            ),
            0,
        )
    line, names = records[n_above]
    below = [cells for _, cells in records[n_above + 1 :]]
    if _has_numbers_before(len(names), below):
        names = ["", *names]
    above = ""
    if below and _are_names_too(names, below):
        above = f"Lines {line} and {records[n_above + 1][0]} have the names of the columns."
        names = [second or first for first, second in zip(names, below[0], strict=True)]
        n_above, below = n_above + 1, below[1:]
    columns, notes = unique_names(names)
    notes[:0] = [above] if above else []
    for place, name in enumerate(names):
        if (
            name
            and name.strip()
            and name in (cells[place] for cells in below if place < len(cells))
        ):
            notes.append(
                f"Line {line} is taken for the names of the columns, and column {place + 1} has its "
                f"name, {name.strip()[:_MOST_SHOWN]}, as a cell too; add a line with names where it is "
                "a row, or use --no-header."
            )
            break
    for line, cells in reversed(records[: n_above - bool(above)]):
        text = " ".join(cell.strip() for cell in cells if cell and cell.strip())
        shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
        notes.insert(0, f"Line {line} is above the names of the columns, and no row: {shown}")
    n_below = _n_beside(below)
    if n_below:
        are = "line is no row" if n_below == 1 else "lines are no rows"
        notes.append(f"Below the names of the columns {n_below} {are}: the program wrote them.")
    return Header(columns, n_above + n_below, notes)


def _are_names_too(names: Sequence[str | None], below: Sequence[Sequence[str | None]]) -> bool:
    """Return whether the record below names has the others: those below cells that span columns.

    These are words, and none is a cell of its column again.
    """
    second, *rows = below
    cells = [(cell or "").strip() for cell in second]
    is_spanned = [not (name or "").strip() for name in names]
    filled = list(filter(None, cells))
    return (
        len(rows) > 1
        and len(cells) == len(names)
        and any(is_spanned[1:])
        and all(cell for cell, spanned in zip(cells, is_spanned, strict=True) if spanned)
        and len(set(filled)) == len(filled)
        and all(len(cell) <= _LONGEST_NAME and not cell[0].isdecimal() for cell in filled)
        and not any(
            cell and any((row[place] or "").strip() == cell for row in rows if place < len(row))
            for place, cell in enumerate(cells)
        )
        and any(_is_repeated(rows, place) for place, spanned in enumerate(is_spanned) if spanned)
    )


def _is_repeated(rows: Sequence[Sequence[str | None]], place: int) -> bool:
    cells = [row[place] for row in rows if place < len(row) and row[place]]
    return 2 * len(set(cells)) <= len(cells)


def _has_numbers_before(n_names: int, rows: Sequence[Sequence[str | None]]) -> bool:
    """Return whether each row has its number before the cells of the names, as R writes tables."""
    numbers = {(cells[0] or "").strip() for cells in rows if len(cells) == n_names + 1}
    return 1 < len(numbers) == len(rows) and all(map(str.isdecimal, numbers))


def _n_beside(rows: Sequence[Sequence[str | None]]) -> int:
    """Return how many rows below the names are none: dashes of Markdown, those of Qualtrics and SurveyMonkey."""
    first, second = (
        [cell.strip() for cell in cells if cell and cell.strip()]
        for cells in (*rows[:2], [], [])[:2]
    )
    if first and (all(map(_DASHES.fullmatch, first)) or {*first} <= _KINDS_OF_ANSWERS):
        return 1
    return 2 if second and all(cell.startswith('{"ImportId"') for cell in second) else 0


def _is_row(records: Sequence[tuple[int, Sequence[str | None]]]) -> bool:
    """Return whether the first record has a text too long for a name, and a cell that is there again.

    A text alone is enough in one column; a question may be its name.
    """
    _, first = records[0]
    if not any(cell and len(cell) > _LONGEST_NAME and " " in cell.strip() for cell in first):
        return False
    if all(len(cells) == 1 for _, cells in records):
        return not str(first[0]).rstrip().endswith(("?", ":"))
    return any(
        cell
        and cell.strip()
        and any(cell == cells[place] for _, cells in records[1:] if place < len(cells))
        for place, cell in enumerate(first)
    )


def _is_title(cells: Sequence[str | None], n_filled: int, usual: int) -> bool:
    if n_filled * 2 < usual:
        return True
    return n_filled == 1 and bool(cells[0] and cells[0].strip())


def _may_be_names(
    records: Sequence[tuple[int, Sequence[str | None]]], place: int, usual: int
) -> bool:
    """Return whether a record below a title may be names: all different, and none a cell below."""
    line, cells = records[place]
    names = [cell.strip() for cell in cells if cell and cell.strip()]
    if len(set(names)) < len(names):
        return False
    is_apart = line > records[0][0] + place or len(records[0][1]) == 1
    if usual == 2 and not is_apart:
        # Two columns, of which the second has no name, look alike.
        others = [*records[1:place], *records[place + 1 :]]
        cells_beside = {cell.strip() for _, row in others for cell in row[1:] if cell}
        return cells_beside.isdisjoint(names[1:])
    return True


def unique_names(cells: Sequence[str | None]) -> tuple[tuple[str, ...], list[str]]:
    """Return names of columns, each once, and remarks to the user on those that were made.

    >>> unique_names(["text", "team 4", "team", "team", ""])[0]
    ('text', 'team 4', 'team', 'team 2', 'column 5')
    """
    given = [(cell or "").strip() for cell in cells]
    taken = {name for name in given if name}
    seen: set[str] = set()
    names: list[str] = []
    notes: list[str] = []
    for number, name in enumerate(given, 1):
        if name and name not in seen:
            seen.add(name)
            names.append(name)
            continue
        base, count = (name, 2) if name else ("column", number)
        while f"{base} {count}" in taken:
            count += 1
        made = f"{base} {count}"
        taken.add(made)
        names.append(made)
        notes.append(
            f"Column {number} is named {name} too; it is called {made} here."
            if name
            else f"Column {number} has no name; it is called {made} here."
        )
    return tuple(names), notes


def describe_refused(refused: Sequence[Refused]) -> str:
    """Return the first rows that were left out, in words."""
    return " ".join(row.sentence for row in refused[:_MOST_LISTED])


def refused_csv(columns: Sequence[str], refused: Sequence[Refused]) -> bytes:
    """Return rows that were left out as CSV, with their places and reasons, their bytes as they were."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    files = ["file"] if any(row.file for row in refused) else []
    writer.writerow([*files, "line", "reason", *columns])
    for row in refused:
        place = [row.file] * len(files)
        cells = ("" if cell is None else cell for cell in row.cells)
        writer.writerow([*place, row.line, row.reason, *cells])
    return _encode(text.getvalue())


def _encode(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")  # half a character of UTF-16
