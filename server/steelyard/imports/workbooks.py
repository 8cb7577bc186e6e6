"""How large the sheets of an Excel workbook are in memory: counted before a library lays them out.

A sheet is laid out as a rectangle that has every cell between those that are filled, and a text that
the workbook has once is copied to every cell that refers to it. Either takes gigabytes, or ends the
process, for a workbook of some kilobytes.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from xml.parsers import expat

from steelyard.imports.unpacked import (
    MAX_SHEET_CHARACTERS,
    UnpackedBytes,
    check_zip,
    entry_chunks,
)

#: Bytes of a cell in the rectangle of a sheet, once it is a text of Python.
_CELL_BYTES = 96
_WORKBOOK = "xl/workbook.xml"
#: The workbooks of other programs, which the library would read too.
_OTHERS = ("xl/workbook.bin", "content.xml")
_SHEET, _TEXTS = b"sheetData", b"sst"
_PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})", re.ASCII)


def check_workbook(archive: zipfile.ZipFile, unpacked: UnpackedBytes) -> int:
    """Return how many of a workbook's cells are several rows that were merged.

    Raise ``ValueError`` for what is no Excel workbook, or takes more memory than the bound.
    """
    names = {name.lower() for name in archive.namelist()}
    if _WORKBOOK not in names or names.intersection(_OTHERS):
        raise ValueError(f"{unpacked.name} is no .xlsx workbook. Save it as .xlsx or CSV.")
    check_zip(archive, unpacked)
    parts: dict[bytes, list[zipfile.ZipInfo]] = {}
    n_merged = 0
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
        for entry in parts.get(_SHEET, []):
            # One sheet is laid out at a time, so that each may have the bound.
            sheet = UnpackedBytes(unpacked.name, unpacked.bound)
            texts = UnpackedBytes(unpacked.name, min(MAX_SHEET_CHARACTERS, unpacked.bound))
            n_merged += _count_cells(entry_chunks(archive, entry), lengths, sheet, texts)
    except (expat.ExpatError, _UnreadablePartError) as error:
        raise ValueError(
            f"{unpacked.name} cannot be read as Excel: {error}. Save it as CSV."
        ) from error
    return n_merged


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


def _count_cells(
    chunks: Iterable[bytes], lengths: list[int], unpacked: UnpackedBytes, texts: UnpackedBytes
) -> int:
    """Count the rectangle between a sheet's filled cells, and the texts that these refer to.

    Return how many cells of several rows were merged.
    """
    row = column = 0
    top = left = 1 << 30
    bottom = right = 0
    is_reference = False
    number = ""
    n_merged = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, top, left, bottom, right, is_reference, number, n_merged
        name = name.rpartition(":")[2]
        if name == "c":
            column += 1
            is_reference = attributes.get("t") == "s"
            if "r" in attributes:
                row, column = _read_place(attributes["r"])
        elif name == "mergeCell":
            first, _, last = attributes.get("ref", "").partition(":")
            n_merged += last != "" and _read_place(first)[0] != _read_place(last)[0]
        elif name in {"v", "is", "f"}:
            if row > bottom or column > right or row < top or column < left:
                top, left = min(top, row), min(left, column)
                bottom, right = max(bottom, row), max(right, column)
                unpacked.check((bottom - top + 1) * (right - left + 1) * _CELL_BYTES)
            is_number = name == "v" and is_reference
            handlers = (add, end) if is_number else (count, None)
            parser.CharacterDataHandler, parser.EndElementHandler = handlers
        elif name == "row":
            row, column = row + 1, 0
            if attributes.get("r", "").isdecimal():
                row = int(attributes["r"])

    def add(text: str) -> None:
        nonlocal number
        number += text

    def count(text: str) -> None:
        texts.add(len(text))

    def end(_: str) -> None:
        nonlocal number
        at = int(number) if number.isdecimal() else len(lengths)
        texts.add(lengths[at] if at < len(lengths) else 0)
        number = ""
        parser.CharacterDataHandler = parser.EndElementHandler = None

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    _parse(chunks, parser)
    return n_merged


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
