"""A file or a folder as a table: its format, encoding and separator are detected from its bytes."""

from __future__ import annotations

import codecs
import io
import json
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from steelyard.imports.columnar import arrow_table, parquet_table
from steelyard.imports.delimited import Options, read_delimited
from steelyard.imports.encodings import Encoding, Source, find_encoding
from steelyard.imports.excel import excel_table, split_sheets
from steelyard.imports.objects import LINES, Numbered, read_objects, table_of
from steelyard.imports.programs import ANNOTATOR
from steelyard.imports.shapes import as_export, program_of, read_shape
from steelyard.imports.splits import split_of
from steelyard.imports.table import Hints, Refused, Row, Table, TablePart, text_rows
from steelyard.imports.unpacked import UnpackedBytes, check_size, check_zip
from steelyard.wire.csv_cells import unguard

#: Endings of the files that are read; a folder of Hugging Face ``datasets`` is too.
ENDINGS = (
    ".csv",
    ".tsv",
    ".txt",
    ".jsonl",
    ".ndjson",
    ".json",
    ".xlsx",
    ".xls",
    ".parquet",
    ".zip",
)
#: Of a folder the files of the first kind that it has are read.
_KINDS = ((".arrow",), (".parquet",), (".csv", ".tsv", ".jsonl", ".ndjson", ".json"))
_JSON = frozenset({*LINES, ".json"})
#: Files that may be of several people, and objects of each that are looked at.
_SEVERAL, _FIRST_ROWS = 2, 20
#: Names of files that a note lists.
_MOST_NAMES = 5
#: What folders of ``datasets`` have beside rows.
_NO_ROWS = frozenset({"dataset_dict.json", "dataset_info.json", "dataset_infos.json", "state.json"})
#: What says that folders are splits.
_IS_SAVED = frozenset({"dataset_dict.json"})
_MARK = b"\xef\xbb\xbf"
#: Columns of Steelyard's exports, also without rows; cells of CSV are guarded against spreadsheets.
_OURS = frozenset({"context", "is_text"})
_PDF = b"%PDF-"
_PARQUET, _ZIP, _OLE = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
#: How compressed files begin: gzip, bzip2, xz, Zstandard, 7-Zip, RAR; and where tar has its name.
_COMPRESSED = re.compile(
    rb"\x1f\x8b|BZh[1-9]1AY&SY|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!\x1a", re.DOTALL
)
_TAR, _TAR_AT = b"ustar", 257
#: Files of other programs that are no text: how they begin, their kind, and what to do.
_BINARY = (
    (b"SQLite format 3", "a SQLite database", "write its table as CSV (sqlite3 -header -csv)"),
    (b"ARROW1", "Arrow or Feather", "save it as Parquet"),
    (b"\xff\xff\xff\xff", "Arrow", "save it as Parquet, or put it into a folder"),
    (_PDF, "a PDF", "save its table as .xlsx or CSV"),
)
#: Files of other kinds of text, by their start or ending.
_MARKUP = re.compile(r"<(?:!doctype|\?xml|html|head|table)\b", re.IGNORECASE)
_OTHER_TEXTS = frozenset({".xml", ".html", ".htm", ".yaml", ".yml"})
#: Texts that look like tables and are none: of SQL, Weka, and mail.
_NO_TABLES = re.compile(
    r"(?P<SQL>(?:--|/\*).*\s|(?:insert\s+into|create\s+table|drop\s+table|begin;|pragma)\b)|"
    r"(?P<ARFF>(?:%.*\s*)*@relation\b)|"
    r"(?P<mail>From \S+@?\S* +\w{3} |(?:Return-Path|Received|Delivered-To|MIME-Version|Message-ID): |(?:Subject|From|To|Date): .*\s(?:[A-Z][\w-]+: .*\s)+)",
    re.IGNORECASE,
)
#: A text of fastText, behind its labels.
_FASTTEXT = re.compile(r"((?:__label__\S+\s+)+)(.*\S)\s*")


def are_rows(data: bytes) -> bool:
    """Return whether a file, or its start, has JSON Lines of rows as datasets have them, and no table."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", errors="ignore").encode(errors="ignore")
    lines = (line.strip() for line in data.removeprefix(_MARK).split(b"\n", _FIRST_ROWS))
    for number, line in enumerate(filter(None, lines)):
        if not line.startswith(b"{"):
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            # The check of rows reports its problem; an object over many lines is none.
            if not number and b'"context"' in line:
                return True
            continue
        return "context" in row and "decisions" in row
    return False


def read_table(
    source: str | Path | bytes,
    name: str = "",
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    long_cells: bool = False,
    shape: str | None = None,
    quote: str | None = None,
    has_header: bool | None = None,
) -> Table:
    """Read a file or a folder as a table.

    Parameters
    ----------
    source : path or bytes
        CSV with any of four separators, objects as JSON Lines or in one array, Excel, Parquet, or a
        folder, packed or not, that ``datasets`` wrote or that has files of one of these kinds.
    name : str
        Name of the file for messages, where bytes are given.
    sheet : str, optional
        Of Excel: the sheet; the first one with a table when left out.
    encoding : str, optional
        Of text: its encoding; detected by default.
    long_cells : bool
        Of CSV: take cells of many lines that look like rows as they are.
    shape : str, optional
        The program whose export it is, a key of ``SHAPES``; detected by default.
    quote : str, optional
        Of CSV: the quotation mark, empty for none; detected by default.
    has_header : bool, optional
        Of CSV and Excel: whether the first line has the names of the columns; detected by default.

    Raises
    ------
    ValueError
        When it cannot be read, or has no rows; the message has the remedy.
    """
    table = _read(source, name, Options(encoding, long_cells, shape, sheet, quote, has_header))
    if table.rows or set(table.columns) >= _OURS:
        return table
    if table.refused:
        raise ValueError(f"No row can be read. {table.refused[0].sentence}")
    raise ValueError(
        f"{name or 'The file'} has no rows below the names of its columns; choose another."
    )


def _read(source: str | Path | bytes, name: str, options: Options) -> Table:
    if isinstance(source, bytes):
        return _table_of(Source(name or "The file", source), options)
    path = Path(source)
    if path.is_dir():
        return _folder(path, options)
    UnpackedBytes(path.name).check(path.stat().st_size)
    return _table_of(Source(path.name, path), options)


def _table_of(source: Source, options: Options) -> Table:
    return as_export(_plain_table(source, options), options.shape)


def _plain_table(source: Source, options: Options) -> Table:
    name = source.name
    start = next(source.chunks(), b"")
    if not start.strip() and not any(chunk.strip() for chunk in source.chunks()):
        raise ValueError(f"{name} is empty; choose another file.")
    if start.startswith(_PARQUET):
        with source.open() as file:
            return parquet_table(file, name, UnpackedBytes(name))
    if start.startswith((_ZIP, _OLE)):
        data = b"".join(source.chunks())
        if start.startswith(_ZIP) and (packed := _packed(data, name, options)) is not None:
            return packed
        return _workbook(data, name, options)
    for beginning, kind, remedy in _BINARY:
        if start.startswith(beginning):
            raise ValueError(f"{name} is {kind}, which is not read; {remedy}.")
    if _COMPRESSED.match(start) or start[_TAR_AT:].startswith(_TAR):
        raise ValueError(f"{name} is compressed; unpack it, and import what is in it.")
    return _text(source, options)


def _workbook(data: bytes, name: str, options: Options) -> Table:
    table = excel_table(data, name, options.sheet, options.has_header)
    sheets = split_sheets(data) if options.sheet is None else []
    if not sheets:
        return table
    tables = [(each, each, excel_table(data, name, each, options.has_header)) for each in sheets]
    return _joined(tables, f"Excel, the sheets {', '.join(sheets)}")


def _text(source: Source, options: Options) -> Table:
    encoding = find_encoding(source, options.encoding)
    with encoding.open(source) as text:
        start = text.read(4096).lstrip()
    if start[:1] in ("{", "[") or PurePosixPath(source.name).suffix.lower() in LINES:
        rows, refused, read_as = read_objects(source, encoding)
        if rows or read_as:
            table = read_shape(rows, refused, read_as, options.shape)
            return table or table_of(rows, refused, read_as)
        if re.match(r"\[\s*[{\[\]]", start):
            raise ValueError(
                f"{source.name} cannot be read. {refused[0].sentence} Export it again, as JSON or CSV."
            )
    if _MARKUP.match(start) or PurePosixPath(source.name).suffix.lower() in _OTHER_TEXTS:
        raise ValueError(
            f"{source.name} is HTML, XML or YAML, which is not read; open it in a spreadsheet program, and "
            "save it as .xlsx or CSV."
        )
    if (other := _NO_TABLES.match(start)) is not None:
        raise ValueError(
            f"{source.name} is {other.lastgroup}, which is not read; write a table with a text and a label in "
            "each row, as CSV."
        )
    if start.startswith("__label__"):
        return _fasttext(source, encoding)
    opened = read_delimited(source, options, encoding)
    columns, rows_ = opened.columns, opened.rows
    if set(columns) >= _OURS:
        columns = tuple(map(unguard, columns))
        rows_ = ((line, [unguard(cell) for cell in cells]) for line, cells in rows_)
    filled = ((line, [cell or None for cell in cells]) for line, cells in rows_)
    return Table(
        columns, text_rows(filled, len(columns)), opened.refused, opened.read_as, opened.notes
    )


def _fasttext(source: Source, encoding: Encoding) -> Table:
    """Return the rows of fastText: a line has labels, each behind ``__label__``, and a text."""
    rows: list[Numbered] = []
    refused: list[Refused] = []
    with encoding.open(source) as text:
        for number, line in enumerate(text, 1):
            if (match := _FASTTEXT.fullmatch(line)) is not None:
                labels = [label.removeprefix("__label__") for label in match[1].split()]
                rows.append((number, {"text": match[2], "label": labels}))
            elif line.strip():
                refused.append(
                    Refused(number, "It has no label before its text; add one.", (line,))
                )
    return table_of(rows, refused, f"Text of fastText, {encoding.name}")


def _as_single_export(sources: Sequence[Source], options: Options) -> Table | None:
    """Return several files of one program as one table; ``None`` where they are anything else.

    Where people labelled alone, their answers to a text are in different files.
    """
    splits = {split_of(PurePosixPath(source.name)) for source in sources}
    if len(sources) < _SEVERAL or splits != {None}:
        return None
    rows: list[Numbered] = []
    places: list[tuple[str, int]] = []
    refused: list[Refused] = []
    title = ""
    for source in sources:
        encoding = find_encoding(source, options.encoding)
        with encoding.open(source) as text:
            if text.read(4096).lstrip()[:1] not in ("{", "["):
                return None
        objects, wrong, title = read_objects(source, encoding)
        program = program_of([row for _, row in objects[:_FIRST_ROWS]], options.shape)
        if program is None:
            return None
        beside = {ANNOTATOR: PurePosixPath(source.name).stem} if program == "doccano" else {}
        refused += [replace(row, file=source.name) for row in wrong]
        for line, row in objects:
            rows.append((len(places), {**row, **beside}))
            places.append((source.name, line))
    table = read_shape(rows, [], title, options.shape)
    if table is None:
        return None
    parts: list[TablePart] = []
    lines: list[Row] = []
    for number, (place, cells) in enumerate(table.rows):
        file, line = places[place]
        if not parts or parts[-1].file != file:
            parts.append(TablePart(number, file))
        lines.append((line, cells))
    refused += [
        replace(row, file=places[row.line][0], line=places[row.line][1]) for row in table.refused
    ]
    return replace(
        table,
        rows=lines,
        refused=refused,
        read_as=f"{_files(len(sources))}, {table.read_as}",
        parts=tuple(parts),
    )


def _folder(folder: Path, options: Options, name: str = "", kind: str = "folder") -> Table:
    """Read a folder that ``datasets`` saved, one split or all, or a folder with files of rows."""
    unpacked = UnpackedBytes(name or str(folder))
    # Where the folder is does not say what is in it: it may be ../data, or below a hidden one.
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    inners = _of_single_kind(files)
    if not inners:
        raise ValueError(
            f"{folder} has no .arrow, .parquet, .csv or .jsonl files; give a folder that datasets saved."
        )
    sources = [Source(str(inner), folder / inner) for inner in inners]
    if all(inner.suffix.lower() in _JSON for inner in inners):
        for inner in inners:
            unpacked.check((folder / inner).stat().st_size)
        if (export := _as_single_export(sources, options)) is not None:
            return export
    is_saved = any((folder / file).exists() for file in _IS_SAVED)
    tables = []
    for inner, source in zip(inners, sources, strict=True):
        split = inner.parts[0] if is_saved and len(inner.parts) > 1 else split_of(inner)
        path = folder / inner
        if inner.suffix == ".arrow":
            table = arrow_table(path, unpacked)
        elif inner.suffix == ".parquet":
            with path.open("rb") as file:
                table = parquet_table(file, path.name, unpacked)
        else:
            unpacked.add(path.stat().st_size)
            table = as_export(_text(source, options), options.shape)
        tables.append((str(inner), split, table))
    table = _joined(tables, f"{_files(len(tables))} of a {kind}")
    left = [str(inner) for inner in files if inner not in inners and _is_data(inner)]
    return replace(table, notes=[*table.notes, *_not_read(left)])


def _is_data(path: PurePath) -> bool:
    """Return whether a file may have rows: no cache, nothing hidden, and nothing beside rows."""
    is_hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not (is_hidden or path.name.startswith("cache-") or path.name in _NO_ROWS)


def _not_read(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(names[:_MOST_NAMES]) + (" …" if len(names) > _MOST_NAMES else "")
    are = "is" if len(names) == 1 else "are"
    return [f"{_files(len(names))} beside them {are} not read: {shown}"]


def _of_single_kind(paths: Sequence[Any]) -> list[Any]:
    for endings in _KINDS:
        found = [path for path in paths if path.suffix.lower() in endings and _is_data(path)]
        if found:
            return found
    return []


def _files(n: int) -> str:
    return f"{n} file{'' if n == 1 else 's'}"


def _packed(data: bytes, name: str, options: Options) -> Table | None:
    """Return the rows of a packed folder; ``None`` where the zip is Excel's."""
    with _open_zip(data, name) as archive:
        names = [entry for entry in archive.namelist() if not entry.endswith("/")]
        if "xl/workbook.xml" in {entry.lower() for entry in names}:
            return None
        entries = [PurePosixPath(entry) for entry in sorted(names)]
        paths = _of_single_kind(entries)
        if not paths and PurePosixPath(name).suffix.lower() == ".zip":
            raise ValueError(
                f"{name} has no .csv, .tsv, .jsonl, .json, .parquet or .arrow files in it; unpack it, and "
                "import the files with rows."
            )
        if not paths:
            return None
        check_zip(archive, UnpackedBytes(name))
        with tempfile.TemporaryDirectory() as folder:
            archive.extractall(folder, [*map(str, paths), *(_IS_SAVED & set(names))])
            table = _folder(Path(folder), options, name, "packed folder")
        left = [str(entry) for entry in entries if entry not in paths and _is_data(entry)]
        return replace(table, notes=[*table.notes, *_not_read(left)])


@contextmanager
def _open_zip(data: bytes, name: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, EOFError) as error:
        raise ValueError(f"{name} cannot be unpacked: {error}. Save it again.") from error


def _joined(tables: Sequence[tuple[str, str | None, Table]], read_as: str) -> Table:
    """Return the rows of several files, with the file and the split of each."""
    spelled: dict[str, str] = {}
    tables = [(file, split, _spelled_alike(table, spelled)) for file, split, table in tables]
    columns = tuple(dict.fromkeys(name for _, _, table in tables for name in table.columns))
    check_size(len(columns), sum(len(table.rows) for _, _, table in tables))
    rows: list[Row] = []
    refused: list[Refused] = []
    parts: list[TablePart] = []
    notes: list[str] = []
    is_several = len(tables) > 1
    for file, split, table in tables:
        parts.append(TablePart(len(rows), file if is_several else "", split))
        refused += [replace(row, file=file) if is_several else row for row in table.refused]
        notes += [f"{file}: {note}" if is_several else note for note in table.notes]
        if table.columns == columns:
            rows += table.rows
            continue
        places = {name: place for place, name in enumerate(table.columns)}
        for line, cells in table.rows:
            row = [cells[places[name]] if name in places else None for name in columns]
            rows.append((line, row))
    hints = _joined_hints([table for _, _, table in tables if table.columns])
    replies = [
        replies
        for _, _, table in tables
        for replies in (table.replies or [[] for _ in table.rows])
        if hints is not None
    ]
    return Table(columns, rows, refused, read_as, notes, tuple(parts), hints, replies)


def _joined_hints(tables: Sequence[Table]) -> Hints | None:
    """Return what the columns mean in exports of one kind; ``None`` where they are anything else."""
    known = [table.hints for table in tables if table.hints is not None]
    context, labels, metadata = roles = [
        tuple(dict.fromkeys(name for hints in known for name in getattr(hints, role)))
        for role in ("context", "labels", "metadata")
    ]
    instructions = {name: text for hints in known for name, text in hints.instructions.items()}
    is_clear = len({name for names in roles for name in names}) == sum(map(len, roles)) and all(
        instructions[name] == text for hints in known for name, text in hints.instructions.items()
    )
    is_known = bool(known) and len(known) == len(tables)
    return Hints(context, labels, metadata, instructions) if is_known and is_clear else None


def _spelled_alike(table: Table, spelled: dict[str, str]) -> Table:
    """Return a table whose columns are spelled as those of the tables before; ``spelled`` has these."""
    plain = [name.strip().casefold() for name in table.columns]
    if len(set(plain)) < len(plain) or table.hints is not None:
        return table
    names = [spelled.setdefault(key, name) for key, name in zip(plain, table.columns, strict=True)]
    other = [
        f"{name} as {known}"
        for name, known in zip(table.columns, names, strict=True)
        if name != known
    ]
    notes = [f"Columns are called as in other files: {', '.join(other)}."] if other else []
    return replace(table, columns=tuple(names), notes=[*table.notes, *notes])
