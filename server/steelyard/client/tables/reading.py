"""A file as a table: what it is, how it is encoded and separated is found from its bytes."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc

from steelyard.client.tables.unpacked import (
    MAX_UNPACKED_BYTES,
    UnpackedBytes,
    check_zip,
    decoded_bytes,
    read_parquet,
)
from steelyard.client.tables.workbooks import check_workbook
from steelyard.wire.csv_cells import unguard

#: Endings of the files that are read; a folder of Hugging Face ``datasets`` is too.
ENDINGS = (
    ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".xlsx", ".xls", ".parquet", ".zip",
)  # fmt: skip
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SAMPLE_BYTES, _SAMPLE_RECORDS = 1 << 18, 50
#: The line in which Excel is told the separator.
_NAMED_SEPARATOR = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
#: Of characters of zero, more than this share is text of two bytes a character.
_MOST_NULS = 0.1
#: The longer ones first: one begins as another does.
_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: What spreadsheets save beside UTF-8.
_ENCODINGS = [
    "utf_8", "utf_16_le", "utf_16_be", "cp1252", "cp1250", "cp1251", "cp1253", "cp1254",
    "shift_jis", "gb18030", "big5", "euc_kr",
]  # fmt: skip
_WESTERN = "cp1252"
#: The metadata of an Arrow schema in which ``datasets`` says what its columns are.
_FEATURES = b"huggingface"
#: Columns of what Steelyard exports, be it of no rows; cells of CSV are guarded against spreadsheets.
_OURS = frozenset({"context", "is_text"})
_PARQUET, _ZIP, _OLE, _GZIP = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that cannot be imported.

    Attributes
    ----------
    line : int
        Where it is in the file: a line, or the number of a row, from 1.
    reason : str
        Why not, and what to do.
    cells : sequence
        What it has.
    """

    line: int
    reason: str
    cells: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """What a file has.

    Attributes
    ----------
    columns : tuple of str
        Names; one that was blank or twice has a number.
    rows : list of (int, list)
        For each row its line, from 1, and its cells, one for each column; ``None`` is no value.
    refused : list of Refused
        Rows that do not fit the columns.
    told : str
        How it was read, such as ``CSV separated by semicolons, Windows-1252``.
    """

    columns: tuple[str, ...]
    rows: list[tuple[int, list[Any]]]
    refused: list[Refused] = field(default_factory=list)
    told: str = ""

    def column(self, name: str) -> list[Any]:
        """Return the cells of a column, by row."""
        at = self.columns.index(name)
        return [cells[at] for _, cells in self.rows]


def are_rows(data: bytes) -> bool:
    """Return whether a file has JSON Lines of rows as datasets have them, and no table."""
    line = data.lstrip(codecs.BOM_UTF8).lstrip().split(b"\n", 1)[0]
    if not line.startswith(b"{"):
        return False
    try:
        row = json.loads(line)
    except ValueError:
        # Whoever checks rows says what is wrong with it; an object over many lines is none.
        return b'"context"' in line
    return "context" in row and "decisions" in row


def read_table(source: str | Path | bytes, name: str = "", *, sheet: str | None = None) -> Table:
    """Read a file or a folder as a table.

    Parameters
    ----------
    source : path or bytes
        CSV with any of four separators, objects as JSON Lines or in one array, Excel, Parquet, or a
        folder, packed or not, that ``datasets`` wrote or that has Parquet files.
    name : str
        What the file is called, where bytes are given; for messages.
    sheet : str, optional
        Of Excel: the sheet; the first one with a table when left out.

    Raises
    ------
    ValueError
        When it cannot be read, or has no rows; the message says what to do.
    """
    table = _read(source, name, sheet)
    if table.rows or set(table.columns) >= _OURS:
        return table
    if table.refused:
        first = table.refused[0]
        raise ValueError(f"No row can be read. Line {first.line}: {first.reason}")
    raise ValueError(
        f"{name or 'The file'} has no rows below the names of its columns; choose another."
    )


def _read(source: str | Path | bytes, name: str, sheet: str | None) -> Table:
    if isinstance(source, bytes):
        return _table_of(source, name or "The file", sheet)
    path = Path(source)
    if path.is_dir():
        return _folder(path)
    UnpackedBytes(path.name).check(path.stat().st_size)
    return _table_of(path.read_bytes(), path.name, sheet)


def _table_of(data: bytes, name: str, sheet: str | None) -> Table:
    if not data.strip():
        raise ValueError(f"{name} is empty; choose another file.")
    if data.startswith(_PARQUET):
        return _arrow([_parquet(io.BytesIO(data), name, UnpackedBytes(name))], "Parquet")
    if data.startswith(_ZIP) and (packed := _packed_parts(data, name)):
        return _arrow(packed, f"{_files(len(packed))} of a packed folder")
    if data.startswith((_ZIP, _OLE)):
        return _excel(data, name, sheet)
    if data.startswith(_GZIP):
        raise ValueError(f"{name} is compressed; unpack it, and import what is in it.")
    text, encoding = _decode(data, name)
    if text.lstrip().startswith(("{", "[")) and (found := _json(text, encoding)) is not None:
        return found
    return _delimited(text, encoding, name)


def _decode(data: bytes, name: str) -> tuple[str, str]:
    for mark, encoding in _BOMS.items():
        if data.startswith(mark):
            return data.decode(encoding, errors="replace"), encoding.removesuffix("-sig").upper()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"  # as good as none
    if text.count("\0") <= _MOST_NULS * len(text):
        return text, "UTF-8"
    from charset_normalizer import from_bytes  # noqa: PLC0415  slow to load, and seldom needed

    matches = from_bytes(data[:_SAMPLE_BYTES], cp_isolation=_ENCODINGS)
    found = matches.best()
    # A few accents look alike in the pages of Windows: then it is the one of Western Europe.
    for one in matches:
        if found is not None and one.encoding == _WESTERN and one.chaos <= found.chaos:
            found = one
    if found is None:
        raise ValueError(f"{name} is no text that can be read; save it as CSV in UTF-8.")
    told = found.encoding.replace("cp", "Windows-").replace("utf_", "utf-").replace("_", "-")
    return data.decode(found.encoding, errors="replace"), told.upper() if "utf" in told else told


def _delimited(text: str, encoding: str, name: str) -> Table:
    named = _NAMED_SEPARATOR.match(text)
    n_before = 0
    if named is not None and named[1] in _SEPARATORS:
        separator, text, n_before = named[1], text[named.end() :], 1
    else:
        separator = _separator(text[:_SAMPLE_BYTES])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    table = Table((), [], told=f"Text separated by {_SEPARATORS[separator]}, {encoding}")
    columns: tuple[str, ...] = ()
    # A context may be longer than what Python takes for a mistake; the limit is the process's.
    limit = csv.field_size_limit(MAX_UNPACKED_BYTES)
    try:
        records = [*_records(reader, table.refused)]
    finally:
        csv.field_size_limit(limit)
    for place, cells in records:
        line = place + n_before
        if not columns:
            columns = _named(cells)
        elif len(cells) == len(columns):
            table.rows.append((line, [cell if cell.strip() else None for cell in cells]))
        else:
            reason = (
                f"It has {len(cells)} cells, and the first line names {len(columns)} columns; "
                "quote cells that have the separator in them."
            )
            table.refused.append(Refused(line, reason, cells))
    if not columns:
        raise ValueError(f"{name} has no line with names of columns; add one.")
    if set(columns) >= _OURS:
        columns = tuple(map(unguard, columns))
        for _, row in table.rows:
            row[:] = [None if cell is None else unguard(cell) for cell in row]
    return Table(columns, table.rows, table.refused, table.told)


def _records(reader: Any, refused: list[Refused]) -> Iterator[tuple[int, list[str]]]:
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            refused.append(Refused(line, f"It cannot be read as CSV: {error}.", ()))
            continue
        if any(cell.strip() for cell in cells):
            yield line, cells


def _separator(sample: str) -> str:
    """Return the separator that cuts the first records most evenly into most cells."""

    def fit(separator: str) -> tuple[float, int]:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        try:
            widths = Counter(len(cells) for cells in islice(reader, _SAMPLE_RECORDS) if cells)
        except csv.Error:
            return 0.0, 0
        if not widths:
            return 0.0, 0
        width, n_even = widths.most_common(1)[0]
        return (n_even / widths.total() if width > 1 else 0.0), width

    return max(_SEPARATORS, key=fit)


def _json(text: str, encoding: str) -> Table | None:
    """Read objects: an array of them, an object that has one, or a line each; ``None`` for no JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        return _json_lines(text, encoding) if text.lstrip().startswith("{") else None
    lists = [value] if isinstance(value, list) else [
        one for one in value.values() if isinstance(one, list)
    ]  # fmt: skip
    if len(lists) != 1 or not all(isinstance(one, dict) for one in lists[0]):
        return _json_lines(text, encoding)
    return _of_objects(list(enumerate(lists[0], 1)), [], f"JSON, {encoding}")


def _json_lines(text: str, encoding: str) -> Table:
    rows: list[tuple[int, dict[str, Any]]] = []
    refused: list[Refused] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            refused.append(Refused(number, f"It is no JSON: {error}.", (line[:200],)))
            continue
        if isinstance(row, dict):
            rows.append((number, row))
        else:
            refused.append(Refused(number, "It is no JSON object; give one a line.", (line[:200],)))
    return _of_objects(rows, refused, f"JSON Lines, {encoding}")


def _of_objects(
    rows: Sequence[tuple[int, dict[str, Any]]], refused: list[Refused], told: str
) -> Table:
    columns = tuple(dict.fromkeys(name for _, row in rows for name in row))
    cells = [(number, [row.get(name) for name in columns]) for number, row in rows]
    return Table(columns, cells, refused, told)


def _excel(data: bytes, name: str, sheet: str | None) -> Table:
    try:
        import fastexcel  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ValueError(
            f"{name} is an Excel file; pip install 'steelyard[excel]', or save it as CSV."
        ) from error
    if data.startswith(_ZIP):
        with _open_zip(data, name) as archive:
            check_workbook(archive, UnpackedBytes(name))
    try:
        book = fastexcel.read_excel(data)
        if sheet is not None and sheet not in book.sheet_names:
            raise ValueError(
                f"{name} has no sheet {sheet!r}; it has {', '.join(book.sheet_names)}."
            )
        names = [sheet] if sheet is not None else list(book.sheet_names)
        chosen, table = names[0], None
        for one in names:
            found = _sheet(book, one)
            if table is None or (found is not None and len(found.columns) > 1):
                chosen, table = one, found
            # A first sheet that explains the workbook is common: one with two columns is a table.
            if table is not None and len(table.columns) > 1:
                break
    except fastexcel.FastExcelError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{name} cannot be read as Excel: {reason}. Save it as CSV.") from error
    if table is None:
        raise ValueError(f"{name} has no sheet with rows; choose another file.")
    told = "Excel" if len(book.sheet_names) == 1 else f"Excel, the sheet {chosen}"
    return Table(table.columns, table.rows, told=told)


def _sheet(book: Any, name: str) -> Table | None:
    """Return the rows of a sheet; ``None`` of one without."""
    sheet = book.load_sheet(name, dtypes="string")
    frame = sheet.to_polars()
    columns = {str(one.name): frame[one.name].to_list() for one in sheet.selected_columns}
    rows = [
        (number, list(cells))
        for number, cells in enumerate(zip(*columns.values(), strict=True), 2)
        if any(cell is not None for cell in cells)
    ]
    return Table(_named(list(columns)), rows) if rows else None


def _parquet(file: BinaryIO, name: str, unpacked: UnpackedBytes) -> pa.Table:
    try:
        table = read_parquet(file, unpacked)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{name} cannot be read as Parquet: {error}.") from error
    named = table.rename_columns(list(_named(table.column_names)))
    return named.replace_schema_metadata(table.schema.metadata)


def _folder(folder: Path) -> Table:
    """Read what ``datasets`` saved, one split or all, or a folder with Parquet files."""
    arrow = sorted(folder.rglob("*.arrow"))
    parquet = sorted(folder.rglob("*.parquet"))
    unpacked = UnpackedBytes(str(folder))
    if arrow:
        saved = [path for path in arrow if not path.name.startswith("cache-")]
        parts = [_arrow_stream(path, unpacked) for path in saved]
    elif parquet:
        parts = [_parquet_file(path, unpacked) for path in parquet]
    else:
        raise ValueError(
            f"{folder} has no .arrow or .parquet files; give a folder that datasets saved."
        )
    return _arrow(parts, f"{_files(len(parts))} of a folder")


def _files(n: int) -> str:
    return f"{n} file{'' if n == 1 else 's'}"


def _parquet_file(path: Path, unpacked: UnpackedBytes) -> pa.Table:
    with path.open("rb") as file:
        return _parquet(file, path.name, unpacked)


def _packed_parts(data: bytes, name: str) -> list[pa.Table]:
    """Return the Parquet files of a zip, such as an exported folder; none where it is Excel's."""
    with _open_zip(data, name) as archive:
        parts = sorted(one for one in archive.namelist() if one.endswith(".parquet"))
        if not parts:
            return []
        check_zip(archive, UnpackedBytes(name))
        unpacked = UnpackedBytes(name)
        return [_parquet(io.BytesIO(archive.read(one)), one, unpacked) for one in parts]


@contextmanager
def _open_zip(data: bytes, name: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, EOFError) as error:
        raise ValueError(f"{name} cannot be unpacked: {error}. Save it again.") from error


def _arrow_stream(path: Path, unpacked: UnpackedBytes) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            batches = []
            for batch in stream:
                unpacked.add(sum(map(decoded_bytes, batch.columns)))
                batches.append(batch)
            return pa.Table.from_batches(batches, stream.schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path.name} cannot be read as Arrow: {error}.") from error


def _arrow(parts: Sequence[pa.Table], told: str) -> Table:
    columns = tuple(dict.fromkeys(name for part in parts for name in part.column_names))
    rows: list[tuple[int, list[Any]]] = []
    for part in parts:
        names = _class_names(part.schema)
        cells = []
        for column in columns:
            if column not in part.column_names:
                cells.append([None] * part.num_rows)
                continue
            values = part.column(column).to_pylist()
            if column in names:
                values = [_class_name(value, names[column]) for value in values]
            cells.append(values)
        start = len(rows) + 1
        rows += [(start + n, list(row)) for n, row in enumerate(zip(*cells, strict=True))]
    return Table(columns, rows, told=told)


def _class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of the classes of columns that ``datasets`` keeps as numbers."""
    try:
        told = json.loads((schema.metadata or {}).get(_FEATURES, b"{}"))
        features = dict(told.get("info", {}).get("features", {}))
    except (ValueError, AttributeError, TypeError):
        return {}
    return {
        column: list(feature["names"])
        for column, feature in features.items()
        if isinstance(feature, dict)
        and feature.get("_type") == "ClassLabel"
        and isinstance(feature.get("names"), list)
    }


def _class_name(value: Any, names: Sequence[str]) -> Any:
    # -1 is how datasets says that a row has no label.
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else None


def _named(cells: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns, each once."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell.strip() or f"column {number}"
        names.append(f"{name} {number}" if name in names else name)
    return tuple(names)
