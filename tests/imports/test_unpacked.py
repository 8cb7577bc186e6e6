"""Files that unpack to far more than their size are refused by every reader before they do."""

from __future__ import annotations

import io
import json
import struct
import zipfile

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.batch.files import RowFile
from steelyard.client.tables import read_table
from steelyard.datasets.csv_rows import CsvReader
from steelyard.datasets.ingest import RowReader
from steelyard.imports import objects, unpacked, workbooks
from steelyard.imports.columnar import parquet_table
from steelyard.imports.encodings import Source, find_encoding
from steelyard.imports.table import ArrowRows
from steelyard.imports.unpacked import UnpackedBytes, check_zip, parquet_batches
from steelyard.imports.workbooks import check_workbook

TEXT = "x" * 100_000
UTF_8 = find_encoding(Source("a", b"a"))
REFUSED = "unpacks to more than 8 MiB. Split it"


@pytest.fixture(autouse=True)
def small_bound(monkeypatch):
    """Bound files by 8 MiB, so that the tests need less memory."""
    monkeypatch.setattr(UnpackedBytes.__init__, "__defaults__", (8 << 20, 0))


def repeated(n_rows):
    return pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), pa.array([TEXT]))


def in_one_list(values):
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def parquet(values, **options):
    file = io.BytesIO()
    pq.write_table(pa.table({"text": values}), file, store_schema=False, **options)
    return file.getvalue()


BOMBS = {
    "a text repeated": lambda: parquet(repeated(500)),
    "a text repeated in one row": lambda: parquet(in_one_list(repeated(500))),
    "texts of one beginning": lambda: parquet(
        [f"{TEXT}{n}" for n in range(200)],
        use_dictionary=False,
        column_encoding="DELTA_BYTE_ARRAY",
        compression="zstd",
    ),
    "rows of nothing": lambda: parquet(pa.nulls(2_000_000, pa.int8())),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_parquet_that_repeats_its_values(bomb):
    data = BOMBS[bomb]()
    assert len(data) < 100_000
    with pytest.raises(ValueError, match=f"bomb.parquet {REFUSED}"):
        read_table(data, "bomb.parquet")


def test_parquet_in_other_places(tmp_path):
    data = BOMBS["a text repeated"]()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rows.parquet", data)
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(ValueError, match=f"rows.zip {REFUSED}"):
        read_table(packed.getvalue(), "rows.zip")
    with pytest.raises(ValueError, match=REFUSED):
        read_table(tmp_path)
    # Rows that are answered some at a time are bounded by what is decoded at one time.
    batches = RowFile(tmp_path / "a.parquet").batches(["text"], 10)
    assert next(batches).contexts == [TEXT] * 10


def test_files_under_the_bound_are_unchanged():
    table = pa.table(
        {
            "list": pa.array([["y" * 3_000, "a"], [], ["a"]] * 100),
            "object": pa.array(
                [{"in": [("k", "v")]}, None, {"in": []}] * 100,
                pa.struct({"in": pa.map_(pa.string(), pa.string())}),
            ),
            "text": ["one", None, "two"] * 100,
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    batches = list(parquet_batches(file, UnpackedBytes("rows", bound=1_000_000)))
    assert pa.Table.from_batches(batches).equals(table)


def test_a_zip_is_counted_despite_its_stated_size():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"0" * 50_000)
        archive.writestr("b", b"0" * 50_000)
    true, small = struct.pack("<L", 50_000), struct.pack("<L", 5)
    for data in (file.getvalue(), file.getvalue().replace(true, small)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_zip(archive, UnpackedBytes("rows.zip", bound=100_000))
            with pytest.raises(ValueError, match=r"rows\.zip unpacks to more than 99999 bytes"):
                check_zip(archive, UnpackedBytes("rows.zip", bound=99_999))


def workbook(cells):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet()
        for row, column, text in cells:
            sheet.write_string(row, column, text)
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [
        [(0, 0, "text"), (1, 0, "a"), (200_000, 16_383, "far away")],
        [(row, 0, "y" * 32_000) for row in range(300)],
    ],
    ids=["two cells far apart", "one text in many cells"],
)
def test_sheets_that_are_larger_than_their_file(cells):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    with pytest.raises(ValueError, match=f"book.xlsx {REFUSED}"):
        read_table(workbook(cells), "book.xlsx")


def replaced(data, name, change):
    """Return a workbook with one of its parts changed."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(file, "w") as after:
        for part in before.namelist():
            text = before.read(part)
            after.writestr(part, change(text) if part == name else text)
    return file


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        (
            "xl/worksheets/sheet1.xml",
            lambda text: text[:-9],
            "cannot be read as Excel: unclosed token",
        ),
        (
            "xl/worksheets/sheet1.xml",
            lambda text: text.replace(
                b"<worksheet", b'<!DOCTYPE a [<!ENTITY b "c">]><worksheet', 1
            ),
            "defines entities",
        ),
        ("xl/worksheets/sheet1.xml", lambda text: text.replace(b'r="A1"', b'r="1A"'), "named '1A'"),
        ("xl/worksheets/sheet1.xml", lambda text: text.replace(b' r="A1"', b""), None),
    ],
)
def test_parts_of_a_workbook_that_are_odd(part, change, message):
    file = replaced(workbook([(0, 0, "text"), (1, 0, "a")]), part, change)
    with zipfile.ZipFile(file) as archive:
        if message is None:
            check_workbook(archive, UnpackedBytes("book.xlsx"))
            return
        with pytest.raises(ValueError, match=message):
            check_workbook(archive, UnpackedBytes("book.xlsx"))


def test_a_workbook_of_another_program():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("content.xml", "<table/>")
    with pytest.raises(ValueError, match=r"is no \.xlsx workbook. Save it as \.xlsx or CSV"):
        read_table(file.getvalue(), "book.ods")


WIDE = {
    "JSON Lines": lambda: "\n".join(
        json.dumps({f"n{n}_{m}": m for m in range(100)}) for n in range(60)
    ),
    "a JSON array": lambda: json.dumps([{f"n{n}_{m}": m for m in range(100)} for n in range(60)]),
    "CSV": lambda: f"{','.join(map(str, range(5_000)))}\n{',' * 4_999}\n",
    "TSV, a row that is wide": lambda: "text\tlabel\na b\ta\n" + "x\t" * 5_000 + "\nc d\tb\n",
}


@pytest.mark.parametrize("form", WIDE)
def test_a_table_as_wide_as_it_is_long_is_refused_before_it_is_made(form):
    with pytest.raises(ValueError, match="The table has over 4,096 columns; leave out"):
        read_table(WIDE[form]().encode())


@pytest.mark.parametrize(("n_columns", "n_rows"), [(4_097, 1), (10, 1_000)])
def test_a_wide_parquet_file_is_refused_before_it_is_decoded(monkeypatch, n_columns, n_rows):
    monkeypatch.setattr(unpacked, "MAX_CELLS", 9_999)
    file, counted = io.BytesIO(), UnpackedBytes("wide.parquet")
    pq.write_table(pa.table({f"c{n}": [0] * n_rows for n in range(n_columns)}), file)
    with pytest.raises(ValueError, match=r"over 4,096 columns|over 9,999 cells"):
        parquet_table(file, "wide.parquet", counted)
    assert counted.n_bytes == 0
    if n_rows == 1:  # and where rows are answered some at a time
        with pytest.raises(ValueError, match="over 4,096 columns"):
            next(parquet_batches(file, counted))


def test_rows_that_are_answered_have_a_bound_of_columns(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = ({"text": "a", **{f"n{n}_{m}": m for m in range(100)}} for n in range(60))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(ValueError, match="over 4,096 columns"):
        next(RowFile(path).batches(["text"], 100))


def test_rows_that_name_their_own_columns_have_a_bound_of_cells(monkeypatch):
    monkeypatch.setattr(unpacked, "MAX_CELLS", 5_000)
    lines = "\n".join(json.dumps({"text": "a b", f"n{n}": n}) for n in range(100))
    with pytest.raises(ValueError, match="columns, over 5,000 cells"):
        read_table(lines.encode())


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([{f"{row} {n}": n for n in range(60)} for row in range(80)], "over 4,096 columns"),
        ([[n] * 10 for n in range(100)], "over 999 values"),
        ([[]] * 1_000, "over 999 values"),
        ([dict.fromkeys(map(str, range(100)), row) for row in range(10)], "over 999 values"),
        ({str(n): list(range(100)) for n in range(10)}, None),
        ({str(n): list(range(100)) for n in range(11)}, "over 999 values"),
        ([{"text": "a, b", "label": "ab"[n % 2]} for n in range(999)], None),
    ],
    ids=["names", "arrays", "empty", "wide", "columns", "more columns", "narrow"],
)
def test_json_that_is_read_whole_has_a_bound_before_it_is_made(monkeypatch, value, told):
    monkeypatch.setattr(objects, "MAX_VALUES", 999)
    monkeypatch.setattr(objects, "table_of", lambda rows, refused, read_as: None)
    loads = json.loads
    whole = []
    monkeypatch.setattr(
        json, "loads", lambda *given, **how: whole.append(1) or loads(*given, **how)
    )
    if told is None:
        objects.read_objects(Source("a.json", json.dumps(value).encode()), UTF_8)
        return
    with pytest.raises(ValueError, match=told):
        objects.read_objects(Source("a.json", json.dumps(value).encode()), UTF_8)
    assert not whole


def test_cells_of_columns_are_no_texts_of_python_until_they_are_looked_at():
    n_rows, n_columns = 500, 1_000
    rows = [list(map(str, range(n_columns))) for _ in range(n_rows)]
    csv = read_table(
        "\n".join(map(",".join, [[f"c{n}" for n in range(n_columns)], *rows])).encode()
    )
    stored = read_table(parquet(pa.array([f"text {n}" for n in range(n_rows)])))
    assert csv.rows._table.nbytes < 9 * n_rows * n_columns
    for table, cells in ((csv, rows[0]), (stored, ["text 0"])):
        assert isinstance(table.rows, ArrowRows)
        assert (len(table.rows), table.rows[0][1], next(iter(table.rows))) == (
            n_rows,
            cells,
            table.rows[0],
        )


def test_a_server_refuses_a_header_that_is_too_wide_in_linear_time():
    reader = RowReader()
    csv = CsvReader(reader, {})
    assert list(csv.read([b"context" + b",a" * 100_000 + b"\n"], "examples")) == []
    [detail] = reader.error().details
    assert "the most are 4,096" in detail["message"]


def test_texts_of_a_sheet_have_a_bound_wherever_they_are(tmp_path, monkeypatch):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    path = tmp_path / "book.xlsx"
    pl.DataFrame({"text": [f"{n} {TEXT[:30_000]}" for n in range(4)]}).write_excel(path)
    assert len(read_table(path).rows) == 4
    monkeypatch.setattr(workbooks, "MAX_SHEET_CHARACTERS", 100_000)
    with pytest.raises(ValueError, match="unpacks to more than"):
        read_table(path)
