"""How large the sheets of an Excel workbook are in memory: counted before a library lays them out.

A sheet is laid out as a rectangle that has every cell between those that are filled, and a text that
the workbook has once is copied to every cell that refers to it. Either takes gigabytes, or ends the
process, for a workbook of some kilobytes.
"""

from __future__ import annotations

import re
import zipfile
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from steelyard.imports.unpacked import (
    MAX_SHEET_CHARACTERS,
    UnpackedBytes,
    check_zip,
    entry_chunks,
)

#: Bytes of a cell in the rectangle of a sheet, once it is a text of Python.
_CELL_BYTES = 96
_WORKBOOK, _PARTS, _STYLES = "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml"
#: The workbooks of other programs, which the library would read too.
_OTHERS = ("xl/workbook.bin", "content.xml")
_SHEET, _TEXTS = b"sheetData", b"sst"
_PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})", re.ASCII)
#: A format of numbers that shows at least so many digits.
_ZEROS = re.compile(r"(0{2,18})(;.*)?")
_ROW = 1 << 14


@dataclass(slots=True)
class SheetCells:
    """Cells of a sheet that a library reads otherwise than a spreadsheet program shows them.

    Attributes
    ----------
    n_merged : int
        Cells of several rows that were merged.
    first : int
        The first column with a value, from 1, where a library begins.
    formulas : array
        Places of formulas without a value, as ``row << 14 | column`` from 1.
    padded : array
        Places of numbers that are shown with zeros before them, each with its digits behind it.
    """

    n_merged: int = 0
    first: int = 1
    formulas: array[int] = field(default_factory=lambda: array("q"))
    padded: array[int] = field(default_factory=lambda: array("q"))


def place_of(place: int) -> tuple[int, int]:
    """Return the row and the column of a place."""
    return divmod(place, _ROW)


def cell_name(place: int) -> str:
    """Return Excel's name of a place.

    >>> cell_name(12 << 14 | 28)
    'AB12'
    """
    row, column = place_of(place)
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{row}"


def check_workbook(archive: zipfile.ZipFile, unpacked: UnpackedBytes) -> dict[str, SheetCells]:
    """Return each sheet's cells that a library would misread; ``ValueError`` for no workbook, or too large."""
    names = {name.lower() for name in archive.namelist()}
    if _WORKBOOK not in names or names.intersection(_OTHERS):
        raise ValueError(f"{unpacked.name} is no .xlsx workbook. Save it as .xlsx or CSV.")
    check_zip(archive, unpacked)
    parts: dict[bytes, list[zipfile.ZipInfo]] = {}
    sheets: dict[str, SheetCells] = {}
    for entry in archive.infolist():
        for tag in (_SHEET, _TEXTS):
            if _mentions(entry_chunks(archive, entry), tag):
                parts.setdefault(tag, []).append(entry)
    try:
        lengths = [
            length
            for entry in parts.get(_TEXTS, [])
            for length in _text_lengths(entry_chunks(archive, entry))
        ]
        part_names, is_calculated = _sheet_parts(archive)
        digits = _shown_digits(archive)
        for entry in parts.get(_SHEET, []):
            # One sheet is laid out at a time, so that each may have the bound.
            sheet = UnpackedBytes(unpacked.name, unpacked.bound)
            texts = UnpackedBytes(unpacked.name, min(MAX_SHEET_CHARACTERS, unpacked.bound))
            reader = _SheetReader(lengths, digits, sheet, texts, is_calculated=is_calculated)
            cells = reader.read(entry_chunks(archive, entry))
            sheets[part_names.get(entry.filename.lower(), entry.filename)] = cells
    except (expat.ExpatError, _UnreadablePartError) as error:
        raise ValueError(
            f"{unpacked.name} cannot be read as Excel: {error}. Save it as CSV."
        ) from error
    return sheets


class _UnreadablePartError(Exception):
    """A part of a workbook is not as Excel writes it."""


def _mentions(chunks: Iterable[bytes], tag: bytes) -> bool:
    """Return whether a tag occurs in a part, whatever the part is called."""
    before = b""
    for chunk in chunks:
        if tag in before + chunk:
            return True
        before = chunk[-len(tag) :]
    return False


def _parse(chunks: Iterable[bytes], parser: expat.XMLParserType) -> None:
    def refuse(*_: object) -> None:
        raise _UnreadablePartError("a part of it defines entities")

    parser.StartDoctypeDeclHandler = refuse
    parser.buffer_text = True
    for chunk in chunks:
        parser.Parse(chunk, False)
    parser.Parse(b"", True)


def _text_lengths(chunks: Iterable[bytes]) -> list[int]:
    """Return the lengths of the texts that cells refer to by number."""
    lengths: list[int] = []

    def begin(name: str, _: object) -> None:
        if name.rpartition(":")[2] == "si":
            lengths.append(0)

    def add(text: str) -> None:
        if lengths:
            lengths[-1] += len(text)

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.CharacterDataHandler = begin, add
    _parse(chunks, parser)
    return lengths


def _elements(
    archive: zipfile.ZipFile, part: str, begin: Callable[[str, Mapping[str, str]], None]
) -> None:
    """Call with the name and the attributes of each element of a part, without their namespaces."""
    entry = next((entry for entry in archive.infolist() if entry.filename.lower() == part), None)
    if entry is None:
        return

    def local(name: str, attributes: dict[str, str]) -> None:
        begin(_local(name), {_local(key): value for key, value in attributes.items()})

    parser = expat.ParserCreate()
    parser.StartElementHandler = local
    _parse(entry_chunks(archive, entry), parser)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _sheet_parts(archive: zipfile.ZipFile) -> tuple[dict[str, str], bool]:
    """Return the sheets by their parts, and whether the values of formulas are those of a calculation.

    Programs that write workbooks without a calculation ask for it when the workbook is opened.
    """
    targets: dict[str, str] = {}
    names: dict[str, str] = {}
    is_calculated = True

    def relation(_: str, attributes: Mapping[str, str]) -> None:
        target = attributes.get("Target", "")
        targets[attributes.get("Id", "")] = (
            target[1:] if target.startswith("/") else f"xl/{target}"
        ).lower()

    def sheet(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal is_calculated
        if name == "sheet":
            names[targets.get(attributes.get("id", ""), "")] = attributes.get("name", "")
        elif name == "calcPr":
            is_calculated = attributes.get("fullCalcOnLoad") not in {"1", "true"}

    _elements(archive, _PARTS, relation)
    _elements(archive, _WORKBOOK, sheet)
    return names, is_calculated


def _shown_digits(archive: zipfile.ZipFile) -> dict[str, int]:
    """Return the least digits that numbers of each style are shown with, where zeros fill them up."""
    formats: dict[str, int] = {}
    styles: list[int] = []
    is_cell_style = False

    def style(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal is_cell_style
        if name == "numFmt" and (zeros := _ZEROS.fullmatch(attributes.get("formatCode", ""))):
            formats[attributes.get("numFmtId", "")] = len(zeros[1])
        elif name in {"cellXfs", "cellStyleXfs"}:
            is_cell_style = name == "cellXfs"
        elif name == "xf" and is_cell_style:
            styles.append(formats.get(attributes.get("numFmtId", ""), 0))

    _elements(archive, _STYLES, style)
    return {str(number): digits for number, digits in enumerate(styles) if digits}


class _SheetReader:
    """Counts the rectangle between a sheet's filled cells, and the texts that these refer to."""

    def __init__(
        self,
        lengths: list[int],
        digits: Mapping[str, int],
        unpacked: UnpackedBytes,
        texts: UnpackedBytes,
        *,
        is_calculated: bool,
    ) -> None:
        self._lengths, self._digits, self._unpacked, self._texts = lengths, digits, unpacked, texts
        self._is_calculated = is_calculated
        self._cells = SheetCells()
        self._row = self._column = 0
        self._top = self._left = self._first = 1 << 30
        self._bottom = self._right = 0
        self._kind: str | None = None
        #: The formula whose value is not yet there, and the number of a text.
        self._formula = 0
        self._number = ""
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._begin

    def read(self, chunks: Iterable[bytes]) -> SheetCells:
        """Return the cells that a library would misread."""
        _parse(chunks, self._parser)
        self._end_cell()
        self._cells.first = min(self._first, 1 << 14)
        return self._cells

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "c":
            self._begin_cell(attributes)
        elif name == "mergeCell":
            first, _, last = attributes.get("ref", "").partition(":")
            self._cells.n_merged += last != "" and _read_place(first)[0] != _read_place(last)[0]
        elif name in {"v", "is", "f"}:
            self._note_place()
            self._parser.EndElementHandler = None
            self._parser.CharacterDataHandler = self._count
            if name == "f":
                # The value of a formula may be an empty text.
                self._formula = 0 if self._kind == "str" else self._row * _ROW + self._column
            elif self._formula:
                self._parser.CharacterDataHandler = self._count_value
            else:
                self._first = min(self._first, self._column)
                if self._kind == "s":
                    self._parser.CharacterDataHandler = self._add
                    self._parser.EndElementHandler = self._end
        elif name == "row":
            self._row, self._column = self._row + 1, 0
            if attributes.get("r", "").isdecimal():
                self._row = int(attributes["r"])

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        self._end_cell()
        self._column += 1
        self._kind = attributes.get("t")
        if "r" in attributes:
            self._row, self._column = _read_place(attributes["r"])
        digits = self._digits.get(attributes.get("s", ""))
        if digits and self._kind in {None, "n"}:
            self._cells.padded.extend((self._row * _ROW + self._column, digits))

    def _end_cell(self) -> None:
        if self._formula:
            self._cells.formulas.append(self._formula)
            self._formula = 0

    def _note_place(self) -> None:
        row, column = self._row, self._column
        if not (self._top <= row <= self._bottom and self._left <= column <= self._right):
            self._top, self._left = min(self._top, row), min(self._left, column)
            self._bottom, self._right = max(self._bottom, row), max(self._right, column)
            size = (self._bottom - self._top + 1) * (self._right - self._left + 1)
            self._unpacked.check(size * _CELL_BYTES)

    def _count(self, text: str) -> None:
        self._texts.add(len(text))

    def _count_value(self, text: str) -> None:
        self._count(text)
        if text.strip():
            self._first = min(self._first, self._column)
            if self._is_calculated or text.strip() != "0":
                self._formula = 0

    def _add(self, text: str) -> None:
        self._number += text

    def _end(self, _: str) -> None:
        at = int(self._number) if self._number.isdecimal() else len(self._lengths)
        self._texts.add(self._lengths[at] if at < len(self._lengths) else 0)
        self._number = ""
        self._parser.CharacterDataHandler = self._parser.EndElementHandler = None


def _read_place(text: str) -> tuple[int, int]:
    """Return the row and the column that a cell's name means.

    >>> _read_place("AB12")
    (12, 28)
    """
    place = _PLACE.fullmatch(text.upper())
    if place is None:
        raise _UnreadablePartError(f"it has a cell named {text[:16]!r}")
    column = 0
    for letter in place[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(place[2]), column
