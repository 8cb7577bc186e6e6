"""Strict readers of CSV and TSV, row by row; rows that cannot be parsed are skipped and reported."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Literal

from steelyard.imports.encodings import Encoding, Source, find_encoding
from steelyard.imports.table import SAMPLE_RECORDS, Refused, Row, find_header
from steelyard.imports.unpacked import MAX_COLUMNS, check_size
from steelyard.wire.violations import has_lone_surrogate

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
#: What separates nothing in a file of one column.
_NO_SEPARATOR = "\x1f"
#: Characters of a row, at most: one that is longer is taken for a mark that is not closed.
MAX_ROW_CHARACTERS = 16 * 1024 * 1024
#: A cell of more lines than this is suspected to have swallowed rows.
LONG_CELL_LINES = 20
_SAMPLE_CHARACTERS = 1 << 18
#: Lines inside a cell that look like rows: so many, all of them, are rows that it swallowed.
_LEAST_SWALLOWED = 3
#: The first line of a file that states its separator for Excel.
_NAMED_SEPARATOR = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
#: The usual quotation mark, and others that programs write.
_MARK, _OTHER_MARKS = '"', "'`"
#: A mark behind a backslash that is not itself behind one.
_ESCAPED = re.compile(r'(?<!\\)((?:\\\\)*)\\"')
_SURROGATES = "has a lone UTF-16 surrogate; send whole characters."


@dataclass(slots=True)
class Options:
    """Options of the user in place of the reader's detection."""

    encoding: str | None = None
    takes_long_cells: bool = False
    shape: str | None = None
    sheet: str | None = None
    quote: str | None = None
    has_header: bool | None = None


@dataclass(slots=True)
class Delimited:
    """A file of rows with a separator; ``rows`` yields them, and adds those it refuses to ``refused``."""

    columns: tuple[str, ...]
    rows: Iterator[Row]
    refused: list[Refused]
    read_as: str
    notes: list[str] = field(default_factory=list)


def read_delimited(
    source: Source, options: Options | None = None, encoding: Encoding | None = None
) -> Delimited:
    """Open a file of rows, reading its column names; ``ValueError`` for a bad encoding or no header line."""
    options = options or Options()
    encoding = encoding or find_encoding(source, options.encoding)
    with encoding.open(source) as text:
        sample = text.read(_SAMPLE_CHARACTERS)
    mark: str = _find_mark(sample) if options.quote is None else options.quote
    named = _NAMED_SEPARATOR.match(sample)
    n_before = 0
    if named is not None and named[1] in SEPARATORS:
        separator, n_before = named[1], 1
    elif options.quote is None and _is_prose(sample, mark):
        separator, mark = _NO_SEPARATOR, ""
    else:
        separator = _find_separator(sample, mark)
    is_escaped = mark == _MARK and _is_escaped(sample, separator)
    if (
        options.quote is None
        and not is_escaped
        and _is_unquoted(source, encoding, separator, n_before, mark)
    ):
        mark = ""
    refused: list[Refused] = []
    is_spaced = bool(mark) and _is_spaced(sample, separator, mark)
    reader = _Records(
        separator, refused, mark=mark, is_spaced=is_spaced, takes_long=options.takes_long_cells
    )
    lines = _lines(source, encoding, n_before)
    records = reader.read(map(_doubled, lines) if is_escaped else lines, n_before)
    first = list(islice(records, SAMPLE_RECORDS))
    if reader.is_too_wide:
        check_size(MAX_COLUMNS + 1)
    header = find_header(first, has_names=options.has_header)
    if header is None and refused:
        raise ValueError(
            f"No row can be read. {refused[0].sentence} Cells are separated by commas, semicolons, tabs or "
            "bars."
        )
    if header is None:
        raise ValueError(f"{source.name} has no line with names of columns; add one.")
    how = f"separated by {SEPARATORS[separator]}" if separator in SEPARATORS else "of one column"
    read_as = f"Text {how}, {encoding.name}"
    notes = header.notes
    if mark not in (_MARK, ""):
        notes.append(f"Its quotation mark is {mark} (--quote gives another).")
    elif is_escaped:
        notes.append("A backslash before a quotation mark makes it a part of its cell.")
    elif not mark and separator in SEPARATORS:
        notes.append("Quotation marks are part of the cells: its rows are not quoted.")
    if is_spaced:
        notes.append("Blanks between a separator and a cell are left out.")
    rows = reader.rows(chain(first[header.n_above + 1 :], records), len(header.columns))
    notes += reader.notes
    reader.notes = notes
    return Delimited(header.columns, rows, refused, read_as, notes)


def split_records(
    lines: Iterable[str], separator: str = ",", n_before: int = 0
) -> Iterator[tuple[int, list[str]] | Refused]:
    """Yield the records of CSV with their first lines, and those that cannot be read."""
    refused: list[Refused] = []
    for record in _Records(separator, refused, mark=_MARK, takes_long=True).read(lines, n_before):
        yield from refused
        refused.clear()
        yield record
    yield from refused


def _lines(source: Source, encoding: Encoding, n_before: int) -> Iterator[str]:
    with encoding.open(source) as text:
        yield from islice(text, n_before, None)


class _Lines:
    """Lines that can be given back; those of the record that is read are kept."""

    def __init__(self, lines: Iterable[str], n_before: int) -> None:
        self._lines = iter(lines)
        self._again: deque[str] = deque()
        self.n_read = n_before
        self.record: list[str] = []
        self._n_characters = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self.n_read += 1
        self.record.append(line)
        if len(self.record) > 1:
            self._n_characters += len(line)
            if self._n_characters > MAX_ROW_CHARACTERS:
                raise csv.Error("unexpected end of data")
        return line

    def begin(self) -> None:
        self.record.clear()
        self._n_characters = 0

    def give_back(self, n_used: int) -> list[str]:
        """Return the lines of the record that are used, and read the others again."""
        self._again.extendleft(reversed(self.record[n_used:]))
        self.n_read -= len(self.record) - n_used
        return self.record[:n_used]


class _Records:
    """Cuts lines into records, and refuses the others."""

    def __init__(
        self,
        separator: str,
        refused: list[Refused],
        *,
        mark: str,
        takes_long: bool,
        is_spaced: bool = False,
    ) -> None:
        self._separator = separator
        self._refused = refused
        self._mark = mark
        self._is_spaced = is_spaced
        self._takes_long = takes_long
        self.notes: list[str] = []
        self.is_too_wide = False

    def read(self, lines: Iterable[str], n_before: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of each record that has any, with the line that it begins on."""
        # A context may be longer than Python's limit of a cell, which is the process's.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_CHARACTERS))
        left = _Lines(lines, n_before)
        reader = self._reader(left)
        record = left.record
        is_first = True
        while True:
            left.begin()
            start = left.n_read + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self._refuse(start, left, error)
                reader = self._reader(left)
                continue
            if len(cells) > MAX_COLUMNS:
                self.is_too_wide = True
                reason = f"It has {len(cells):,} cells; the most are {MAX_COLUMNS:,}."
                self._refused.append(Refused(start, reason, ()))
            elif len(record) > 3 and (swallowed := self._swallowed(start, record, len(cells))):
                self._refused.append(Refused(start, swallowed, cells))
            elif any(cells) and any(map(str.strip, cells)):
                is_first = False
                yield start, cells
            elif is_first and len(cells) > 1:
                self.notes.append(f"Line {start} is empty; the names of the columns are below it.")

    def rows(self, records: Iterator[tuple[int, list[str]]], n_columns: int) -> Iterator[Row]:
        """Yield the records that have a cell for each column, and whole characters."""
        for line, cells in records:
            if len(cells) != n_columns:
                if len(cells) > n_columns and not any(map(str.strip, cells[n_columns:])):
                    yield line, list(cells[:n_columns])  # separators at the end
                    continue
                remedy = (
                    "quote cells that have the separator in them"
                    if len(cells) > n_columns
                    else "add the separators that are missing"
                )
                reason = f"It has {len(cells)} cells, and there are {n_columns} columns; {remedy}."
                self._refused.append(Refused(line, reason, cells))
            elif any(not cell.isascii() and has_lone_surrogate(cell) for cell in cells):
                self._refused.append(Refused(line, wrong_characters(cells), cells))
            else:
                yield line, cells

    def _reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        if self._mark:
            return csv.reader(
                lines,
                delimiter=self._separator,
                quotechar=self._mark,
                skipinitialspace=self._is_spaced,
                strict=True,
            )
        return csv.reader(lines, delimiter=self._separator, quoting=csv.QUOTE_NONE, strict=True)

    def _refuse(self, start: int, left: _Lines, error: csv.Error) -> None:
        place = _opening(left.record, self._separator, self._mark)
        n_used, column = place or (1, 1)
        used = left.give_back(n_used)
        if "field larger" in str(error):
            reason = f"A cell has over {MAX_ROW_CHARACTERS:,} characters; shorten it."
        else:
            reason = (
                f"The quotation mark in line {start + n_used - 1}, character {column} is not closed "
                "before a separator or the end of the line; close it, and double marks inside a cell."
            )
        self._refused.append(Refused(start, reason, ["".join(used).rstrip("\r\n")]))

    def _swallowed(self, start: int, record: Sequence[str], n_cells: int) -> str | None:
        """Return why a record of many lines is not taken; long ones that are get a note."""
        n_lines = len(record)
        if self._takes_long or n_cells < 2:
            return None
        inner = record[1:-1]
        n_like = sum(line.count(self._separator) == n_cells - 1 for line in inner)
        is_long = n_lines > LONG_CELL_LINES
        if len(inner) >= _LEAST_SWALLOWED and n_like >= (len(inner) / 2 if is_long else len(inner)):
            return (
                f"It has a cell of {n_lines} lines, to line {start + n_lines - 1}, that look like rows; "
                "close or double its quotation mark, or take it as it is (--long-cells)."
            )
        if is_long:
            self.notes.append(
                f"Line {start} begins a row of {n_lines} lines; look whether it is one."
            )
        return None


def wrong_characters(cells: Sequence[str]) -> str:
    """Return why cells with lone surrogates are refused: bytes that are not text, or half characters."""
    wrong = next(sign for cell in cells for sign in cell if "\ud800" <= sign <= "\udfff")
    if "\udc80" <= wrong <= "\udcff":
        return (
            f"It has the byte 0x{ord(wrong) - 0xDC00:02X}, which is not UTF-8; write it as UTF-8."
        )
    return f"It {_SURROGATES}"


def _opening(record: Sequence[str], separator: str, mark: str) -> tuple[int, int] | None:
    """Return the line of a record, and the character in it, where a mark opens that does not close."""
    place = None
    is_open = was_mark = False
    at_start = True
    for number, line in enumerate(record, 1):
        for column, sign in enumerate(line, 1):
            if is_open:
                if was_mark:
                    was_mark = False
                    if sign == mark:
                        continue
                    if sign != separator and sign not in "\r\n":
                        return place
                    is_open, at_start = False, sign == separator or sign in "\r\n"
                elif sign == mark:
                    was_mark = True
            elif at_start and sign == mark:
                is_open, place = True, (number, column)
            else:
                at_start = sign == separator or sign in "\r\n"
    return place


def _find_mark(sample: str) -> str:
    """Return the quotation mark of a file: another than the usual one where most lines have cells in it."""
    lines = [line for line in sample.splitlines()[:SAMPLE_RECORDS] if line.strip()]
    counts = {
        mark: sum(
            re.search(rf"(?:^|[,;\t|] *){mark}(?:[^{mark}]|{mark}{mark})*{mark}(?:$|[,;\t|])", line)
            is not None
            for line in lines
        )
        for mark in (_MARK, *_OTHER_MARKS)
    }
    mark = max(counts, key=counts.__getitem__)
    return mark if 2 * counts[mark] > len(lines) else _MARK


def _doubled(line: str) -> str:
    """Return a line whose quotation marks inside cells are doubled, in place of a backslash before each."""
    return _ESCAPED.sub(r'\1""', line) if '\\"' in line else line


def _is_escaped(sample: str, separator: str) -> bool:
    """Return whether quotation marks inside cells follow a backslash, as MySQL and Spark write them.

    That is so where rows that cannot be read otherwise can all be read.
    """

    def is_whole(lines: list[str]) -> bool:
        return not any(isinstance(record, Refused) for record in split_records(lines, separator))

    lines = sample.splitlines(keepends=True)
    if len(sample) == _SAMPLE_CHARACTERS:
        lines.pop()
    doubled = list(map(_doubled, lines))
    return doubled != lines and not is_whole(lines) and is_whole(doubled)


def _is_prose(sample: str, mark: str) -> bool:
    """Return whether a file has a text a line: marks before blanks alone, some lines more than others."""
    lines = [line for line in sample.splitlines()[:SAMPLE_RECORDS] if line.strip()]
    commas, semicolons = ({line.count(each) for line in lines} for each in ",;")
    is_even = len(commas) < 2 or (len(semicolons) < 2 and semicolons != {0})
    is_cut = any(re.search(r"[\t|]|[,;](?! )", line) for line in lines)
    return not is_even and not is_cut and not _is_spaced(sample, ",", mark)


def _find_separator(sample: str, mark: str) -> str:
    """Return the separator that cuts the first records most evenly, between quoted cells, into most cells."""
    lines = [line for line in sample.splitlines()[:SAMPLE_RECORDS] if line.strip()]

    def fit(separator: str) -> tuple[float, bool, int]:
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if mark else csv.QUOTE_NONE
        text = io.StringIO(sample, newline="")
        reader = csv.reader(text, delimiter=separator, quotechar=mark or _MARK, quoting=quoting)
        try:
            widths = Counter(len(cells) for cells in islice(reader, SAMPLE_RECORDS) if cells)
        except csv.Error:
            return 0.0, False, 0
        if not widths:
            return 0.0, False, 0
        width, n_even = widths.most_common(1)[0]
        is_between = 2 * sum(f"{mark}{separator}{mark}" in line for line in lines) > len(lines)
        is_between = is_between and bool(mark)
        return (n_even / widths.total() if width > 1 else 0.0), is_between, width

    return max(SEPARATORS, key=fit)


def _is_spaced(sample: str, separator: str, mark: str) -> bool:
    """Return whether a blank stands before the quotation marks of most lines: ``"a", "b"``."""
    mark = re.escape(mark)
    pattern = re.compile(rf"(?<!{mark}){mark}{re.escape(separator)} +{mark}(?!{mark})")
    lines = [line for line in sample.splitlines()[:SAMPLE_RECORDS] if line.strip()]
    return 2 * sum(pattern.search(line) is not None for line in lines) > len(lines)


def _is_unquoted(
    source: Source, encoding: Encoding, separator: str, n_before: int, mark: str
) -> bool:
    """Return whether quotation marks are part of cells, as programs write that separate by tabs.

    That is so where some mark means nothing, and every line has as many cells as any other.
    """
    if separator not in "\t|" or mark != _MARK:
        return False
    n_separators = None
    has_marks = False
    for line in _lines(source, encoding, n_before):
        if not line.strip():
            continue
        count = line.count(separator)
        n_separators = count if n_separators is None else n_separators
        if count != n_separators or not count:
            return False
        has_marks = has_marks or mark in line
    if not has_marks:
        return False
    lines = _lines(source, encoding, n_before)
    return any(isinstance(record, Refused) for record in split_records(lines, separator, n_before))
