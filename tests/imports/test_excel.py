"""Excel workbooks as spreadsheet programs show them, and the parts that cannot be read."""

from __future__ import annotations

import polars as pl
import pytest

from steelyard.cli.importing import choose_columns
from steelyard.client.tables import convert, guess_mapping, read_table


def test_excel_may_have_no_names(tmp_path):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    path = tmp_path / "rows.xlsx"
    frame = pl.DataFrame([("one text", "a", None), ("two texts", "b", None)], orient="row")
    frame.write_excel(path, include_header=False)
    table = read_table(path, has_header=False)
    assert [cells[:2] for _, cells in table.rows] == [["one text", "a"], ["two texts", "b"]]


def test_excel_rows_have_the_numbers_that_excel_shows(tmp_path):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = tmp_path / "book.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(2, 1, ["Exported by helpdesk"])
        sheet.write_row(4, 1, ["message", "team", "n"])
        for row in range(5, 9):
            sheet.write_row(row, 1, [f"message {row}", "ab"[row % 2], row])
        sheet.write_row(10, 1, ["no team", None, 3])
    table = read_table(path)
    made = convert(table, guess_mapping(table))
    assert table.columns == ("message", "team", "n")
    assert [line for line, _ in table.rows] == [6, 7, 8, 9, 11]
    assert [row.line for row in made.refused] == [11]


def test_numbers_that_a_spreadsheet_rounds_are_reported(tmp_path):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "ids.xlsx") as book:
        sheet = book.add_worksheet()
        for row, cells in enumerate([("text", "id", "n"), ("a b", 9007199254740993, 1)]):
            sheet.write_row(row, 0, cells)
    [note] = read_table(tmp_path / "ids.xlsx").notes
    assert note.startswith("id has numbers of more than 15 digits")


def test_errors_of_a_spreadsheet_are_reported(tmp_path):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        for row, cells in enumerate([("text", "team"), ("a b", "x"), (), ("c d", "y"), ("e f",)]):
            sheet.write_row(row, 0, cells)
        for row, column, error in ((2, 0, "#DIV/0!"), (2, 1, "#REF!"), (4, 1, "#N/A")):
            sheet.write_formula(row, column, "=1/0", None, error)
    table = read_table(tmp_path / "a.xlsx")
    assert [line for line, _ in table.rows] == [2, 4, 5]
    assert table.notes == [
        "1 cells have errors of Excel, and are empty here: the first is #N/A in line 5, column 2."
    ]
    [left] = table.refused
    assert (left.line, left.cells) == (3, ["#DIV/0!", "#REF!"])


def saved_by(program, path, rows, code="00000"):
    """A workbook in which a text that begins with = is a formula, and numbers have a format."""
    if program == "openpyxl":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for number, row in enumerate(rows, 1):
            for place, cell in enumerate(row, 2):
                book.active.cell(number, place, cell).number_format = code
        book.create_sheet("notes").append(["=1+1"])
        book.save(path)
        return
    with pytest.importorskip("xlsxwriter").Workbook(path) as book:
        sheet, shown = book.add_worksheet(), book.add_format({"num_format": code})
        for number, row in enumerate(rows):
            sheet.write_row(number, 1, row, shown)


@pytest.mark.parametrize("program", ["openpyxl", "xlsxwriter"])
def test_formulas_without_values_are_reported(tmp_path, program):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    rows = [("text", "team"), ('="a "&"b"', "x"), ("c d", "y"), ("=B3", "=C3"), ("e f", "=C3")]
    saved_by(program, tmp_path / "a.xlsx", rows)
    table = read_table(tmp_path / "a.xlsx")
    assert [list(cells) for _, cells in table.rows] == [[None, "x"], ["c d", "y"], ["e f", None]]
    [note] = (note for note in table.notes if "formulas" in note)
    assert note == (
        "4 cells have formulas without values, and are empty here: B2, B4, C4, C5. Open the file in a "
        "spreadsheet program and save it, which puts them in."
    )
    [left] = table.refused
    assert (left.line, left.cells) == (4, ["(formula)", "(formula)"])
    saved_by(program, tmp_path / "b.xlsx", [("=1", "=2")] * 3)
    with pytest.raises(ValueError, match="formulas without values alone"):
        read_table(tmp_path / "b.xlsx")
    saved_by(program, tmp_path / "c.xlsx", [("text", "team"), ("a b", "=B2"), ("c d", "=B3")])
    with pytest.raises(ValueError, match=r"looks like a label.*2 cells have formulas"):
        choose_columns(read_table(tmp_path / "c.xlsx"), ("text",), (), ())


@pytest.mark.parametrize("program", ["openpyxl", "xlsxwriter"])
@pytest.mark.parametrize(
    ("code", "cells"),
    [
        ("0000", ["0007", "0012", "1234", "12345", "x"]),
        ("000;-000", ["007", "012", "1234", "12345", "x"]),
        ("General", ["7", "12", "1234", "12345", "x"]),
    ],
)
def test_numbers_have_the_zeros_that_a_spreadsheet_shows(tmp_path, program, code, cells):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    rows = [("code", "text"), *((cell, "a b") for cell in (7, 12, 1234, 12345, "x"))]
    saved_by(program, tmp_path / "a.xlsx", rows, code)
    assert list(read_table(tmp_path / "a.xlsx").column("code")) == cells
