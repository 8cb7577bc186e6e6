"""Excel workbooks as tables, with the row numbers that Excel shows."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard.imports.splits import side_of
from steelyard.imports.table import SAMPLE_RECORDS, Refused, Row, Table, find_header
from steelyard.imports.unpacked import UnpackedBytes
from steelyard.imports.workbooks import SheetCells, cell_name, check_workbook, place_of

_ZIP = b"PK\x03\x04"
#: A whole number that has more digits than Excel keeps.
_LONG_NUMBER = re.compile(r"-?[1-9]\d{15,}")

#: The text of a formula without a value, the remedy, and how many cells are named.
_FORMULA = "(formula)"
_CALCULATE = "Open the file in a spreadsheet program and save it, which puts them in."
_MOST_NAMES = 8
#: Errors of formulas, as the library calls them and as Excel shows them.
_ERROR = re.compile(r"Error\((\w+)\)")
_ERRORS = {
    "Div0": "#DIV/0!",
    "NA": "#N/A",
    "Name": "#NAME?",
    "Null": "#NULL!",
    "Num": "#NUM!",
    "Ref": "#REF!",
    "Value": "#VALUE!",
}


def split_sheets(data: bytes) -> list[str]:
    """Return the sheets of a workbook that are splits, where they are of both sides."""
    import fastexcel  # noqa: PLC0415  an extra

    sides = {name: side_of(name) for name in fastexcel.read_excel(data).sheet_names}
    return (
        [name for name in sides if sides[name]]
        if {"training", "evaluation"} <= {*sides.values()}
        else []
    )


def excel_table(data: bytes, name: str, sheet: str | None, has_names: bool | None = None) -> Table:
    """Return the rows of a sheet: the named one, or the first that has a table."""
    try:
        import fastexcel  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ValueError(
            f"{name} is an Excel file; pip install 'steelyard[excel]', or save it as CSV."
        ) from error
    cells: dict[str, SheetCells] = {}
    if data.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            cells = check_workbook(archive, UnpackedBytes(name))
    try:
        book = fastexcel.read_excel(data)
        if sheet is not None and sheet not in book.sheet_names:
            raise ValueError(
                f"{name} has no sheet {sheet!r}; it has {', '.join(book.sheet_names)}."
            )
        names = [sheet] if sheet is not None else list(book.sheet_names)
        chosen, table = names[0], None
        for candidate in names:
            rows = _sheet(book, candidate, has_names, cells.get(candidate, SheetCells()))
            if table is None or (rows is not None and len(rows.columns) > 1):
                chosen, table = candidate, rows
            # A first sheet that explains the workbook is common: one with two columns is a table.
            if table is not None and len(table.columns) > 1:
                break
    except fastexcel.FastExcelError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{name} cannot be read as Excel: {reason}. Save it as CSV.") from error
    if table is None:
        if any(cells[candidate].formulas for candidate in names if candidate in cells):
            raise ValueError(
                f"{name} has formulas without values alone. Open it in a spreadsheet program and save it."
            )
        raise ValueError(f"{name} has no sheet with rows; choose another file.")
    read_as = "Excel" if len(book.sheet_names) == 1 else f"Excel, the sheet {chosen}"
    notes = list(table.notes)
    if chosen in cells and (n_merged := cells[chosen].n_merged):
        notes.append(f"{n_merged:,} merged cells have their value in their first row alone.")
    others = [other for other in book.sheet_names if other != chosen]
    if others and sheet is None:
        notes.append(f"Other sheets are not read (--sheet): {', '.join(others)}")
    return replace(table, read_as=read_as, notes=notes)


def _sheet(book: Any, name: str, has_names: bool | None, shown: SheetCells) -> Table | None:
    """Return the rows of a sheet, as it is ``shown``; ``None`` of one without."""
    sheet = book.load_sheet(name, header_row=None, skip_rows=0, dtypes="string")
    batch, wrong = sheet.to_arrow_with_errors()
    errors: dict[int, dict[int, str]] = {}
    for error in wrong.errors if wrong is not None else ():
        (row, column), found = error.position, _ERROR.search(error.detail)
        wording = _ERRORS.get(found[1], found[1]) if found else error.detail
        errors.setdefault(row + 1, {})[column] = wording
    by_column = [column.to_pylist() for column in batch.columns]
    _show_cells(by_column, shown, errors)
    rows: list[Row] = []
    refused: list[Refused] = []
    for number, cells in enumerate(zip(*by_column, strict=True), 1):
        if any(cell is not None and cell.strip() for cell in cells):
            rows.append((number, list(cells)))
        elif number in errors:
            reason = "Its cells have errors of Excel alone; repair their formulas."
            if _FORMULA in errors[number].values():
                reason = f"Its cells have formulas without values alone. {_CALCULATE}"
            shown_cells = [errors[number].get(place) for place in range(len(cells))]
            refused.append(Refused(number, reason, shown_cells))
    header = find_header(rows[:SAMPLE_RECORDS], has_names=has_names)
    below = rows[header.n_above + 1 :] if header is not None else []
    if header is None or not (below or refused):
        return None
    columns, notes = header.columns, header.notes
    # Columns that are empty throughout are those that were only formatted.
    named = rows[header.n_above][1] if header.n_above >= 0 else [None] * len(columns)
    full = [
        place
        for place in range(len(columns))
        if (named[place] or "").strip() or any(cells[place] is not None for _, cells in below)
    ]
    if len(full) < len(columns):
        lost = {columns[place] for place in range(len(columns))} - {
            columns[place] for place in full
        }
        notes = [
            note
            for note in notes
            if not any(note.endswith(f"called {name} here.") for name in lost)
        ]
        columns = tuple(columns[place] for place in full)
        below = [(number, [cells[place] for place in full]) for number, cells in below]
        refused = [replace(row, cells=[row.cells[place] for place in full]) for row in refused]
    notes = [*notes, *_notes_on(columns, below, errors, shown.formulas)]
    return Table(columns, below, refused, notes=notes)


def _notes_on(
    columns: Sequence[str],
    rows: Sequence[Row],
    errors: Mapping[int, Mapping[int, str]],
    formulas: Sequence[int],
) -> Iterator[str]:
    """Yield what the cells of a table lost in Excel, or lose here."""
    long = [
        name
        for place, name in enumerate(columns)
        if any(cells[place] and _LONG_NUMBER.fullmatch(cells[place]) for _, cells in rows)
    ]
    if long:
        text = f"{', '.join(long)} has numbers of more than 15 digits, of which Excel keeps 15; "
        yield f"{text}where they are ids, write them as text."
    places = [
        (number, place)
        for number, _ in rows
        for place, wording in sorted(errors.get(number, {}).items())
        if wording != _FORMULA
    ]
    if places:
        number, place = places[0]
        note = f"{len(places):,} cells have errors of Excel, and are empty here: the first is "
        yield f"{note}{errors[number][place]} in line {number}, column {place + 1}."
    if formulas:
        names = ", ".join(map(cell_name, formulas[:_MOST_NAMES]))
        names += " …" if len(formulas) > _MOST_NAMES else ""
        n_cells = f"{len(formulas):,} cells have formulas without values"
        yield f"{n_cells}, and are empty here: {names}. {_CALCULATE}"


def _show_cells(
    by_column: list[list[str | None]], shown: SheetCells, errors: dict[int, dict[int, str]]
) -> None:
    """Empty the cells of formulas without a value, and put zeros before numbers that are shown so."""
    n_rows = len(by_column[0]) if by_column else 0
    for place, digits in zip(shown.padded[::2], shown.padded[1::2], strict=True):
        row, column = place_of(place)
        column -= shown.first
        if row <= n_rows and 0 <= column < len(by_column):
            cell = by_column[column][row - 1]
            if cell is not None and cell.isdecimal():
                by_column[column][row - 1] = cell.zfill(digits)
    for place in shown.formulas:
        row, column = place_of(place)
        column -= shown.first
        if row <= n_rows and 0 <= column < len(by_column):
            by_column[column][row - 1] = None
        errors.setdefault(row, {})[column] = _FORMULA
