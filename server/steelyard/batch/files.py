"""Rows of files, some at a time, and scored rows as a file of any format.

Columns beside the context pass through as they are: those of CSV as their texts, those of JSON as the
very characters of their values.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow.parquet as pq

from steelyard.durable import flush
from steelyard.imports.delimited import Options, read_delimited
from steelyard.imports.encodings import Encoding, Source, find_encoding
from steelyard.imports.objects import json_lines
from steelyard.imports.reading import ENDINGS, read_table
from steelyard.imports.table import Refused, Row
from steelyard.imports.unpacked import UnpackedBytes, check_size, parquet_batches
from steelyard.wire.violations import has_lone_surrogate

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LINES = frozenset({".jsonl", ".ndjson"})
FORMATS = frozenset({*_DELIMITERS, *_LINES, ".parquet"})
#: What is read beside these: whole, as ``dataset import`` does.
_TABLES = frozenset(ENDINGS) - FORMATS
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Some rows as columns, and the context of each as it is sent."""

    rows: pl.DataFrame
    contexts: list[Any]


class RowFile:
    """A file whose rows are answered.

    ``refused``: rows that cannot be read, so far; ``batches`` leaves them out. ``columns``: the
    names of its columns; ``None`` when each row names its own.
    """

    def __init__(self, path: Path, options: Options | None = None) -> None:
        check_format(path, FORMATS | _TABLES)
        self.path = path
        self.refused: list[Refused] = []
        self._options = options or Options()
        self._source = Source(str(path), path)
        self._rows: Iterator[Row] = iter(())
        self._raw: Iterator[tuple[int, Any]] | None = None
        self._n_rows: int | None = None
        self._encoding: Encoding | None = None
        self.columns: list[str] | None = None
        self.read_as, self.notes = "Parquet", list[str]()
        if path.suffix.lower() in _TABLES:
            self._open_table()
        elif self.is_json:
            self._encoding = find_encoding(self._source, self._options.encoding)
            self.read_as = f"JSON Lines, {self._encoding.name}"
        elif path.suffix.lower() == ".parquet":
            self.columns = list(pq.read_schema(path).names)
        else:
            opened = read_delimited(self._source, self._options)
            self.columns, self._rows = list(opened.columns), opened.rows
            self.refused, self.read_as, self.notes = opened.refused, opened.read_as, opened.notes

    @property
    def is_json(self) -> bool:
        """Whether its cells are JSON: of objects, or of a table whose cells are not all texts."""
        return self._raw is not None or self.path.suffix.lower() in _LINES

    def _open_table(self) -> None:
        options = self._options
        table = read_table(
            self.path,
            sheet=options.sheet,
            encoding=options.encoding,
            long_cells=options.takes_long_cells,
            quote=options.quote,
            has_header=options.has_header,
        )
        self.columns, self.refused = list(table.columns), list(table.refused)
        self.read_as, self.notes, self._n_rows = table.read_as, table.notes, len(table.rows)
        if all(cell is None or isinstance(cell, str) for _, cells in table.rows for cell in cells):
            self._rows = iter(table.rows)
        else:
            self._raw = (
                (
                    line,
                    {name: _encoded(cell) for name, cell in zip(table.columns, cells, strict=True)},
                )
                for line, cells in table.rows
            )

    def count(self) -> int:
        """Return how many rows it has, at most: a text with line ends counts as several."""
        if self.path.suffix.lower() == ".parquet":
            return int(pq.read_metadata(self.path).num_rows)
        if self._n_rows is not None:
            return self._n_rows
        return max(sum(chunk.count(b"\n") for chunk in self._source.chunks()), 1)

    def batches(
        self, context: Sequence[str], n_rows: int, *, start: int = 0
    ) -> Iterator[RowColumns]:
        """Yield the rows from ``start``, ``n_rows`` at a time.

        A context of one column is that column's value, and one of several an object of them.
        """
        if self.path.suffix.lower() == ".parquet":
            yield from self._of_parquet(context, n_rows, start)
            return
        objects = self._raw or (self._objects(context) if self.is_json else self._rows)
        rows = islice(objects, start, None)
        while True:
            batch = list(islice(rows, n_rows))
            if not batch:
                return
            if self.is_json:
                yield _raw_batch(batch, context)
            else:
                names = self.columns or []
                values = dict(
                    zip(names, zip(*(cells for _, cells in batch), strict=True), strict=True)
                )
                frame = pl.DataFrame(values, schema=dict.fromkeys(names, pl.String))
                yield RowColumns(frame, contexts_of(frame, context))

    def _objects(self, context: Sequence[str]) -> Iterator[tuple[int, Any]]:
        assert self._encoding is not None  # noqa: S101  JSON has one
        for row in json_lines(self._source, self._encoding, is_raw=True):
            if isinstance(row, Refused):
                self.refused.append(row)
                continue
            line, values = row
            missing = [name for name in context if name not in values]
            if missing:
                reason = f"It has no field {missing[0]!r}; add it."
            elif any(is_cut(values[name]) for name in context):
                reason = f"{context[0]} has a lone UTF-16 surrogate; send whole characters."
            else:
                yield row
                continue
            self.refused.append(Refused(line, reason, (msgspec.json.encode(values).decode(),)))

    def _of_parquet(self, context: Sequence[str], n_rows: int, start: int) -> Iterator[RowColumns]:
        waiting: list[pl.DataFrame] = []
        n_waiting = 0
        part = UnpackedBytes(str(self.path))
        with self.path.open("rb") as file:
            for batch in parquet_batches(file, part, n_rows=n_rows):
                # Rows are answered some at a time, so that the bound is for those at one time.
                part.n_bytes = 0
                frame = pl.DataFrame(batch)
                skipped = min(start, frame.height)
                start -= skipped
                waiting.append(frame.slice(skipped))
                n_waiting += waiting[-1].height
                while n_waiting >= n_rows:
                    joined = pl.concat(waiting)
                    first = joined.slice(0, n_rows)
                    yield RowColumns(first, contexts_of(first, context))
                    waiting, n_waiting = [joined.slice(n_rows)], n_waiting - n_rows
        if n_waiting:
            joined = pl.concat(waiting)
            yield RowColumns(joined, contexts_of(joined, context))


def check_format(path: Path, formats: frozenset[str] = FORMATS) -> None:
    """Raise ``ValueError`` when a file's ending names no format."""
    if path.suffix.lower() not in formats:
        known = ", ".join(sorted(formats))
        raise ValueError(f"{path} has no known ending; write it as one of {known}.")


def contexts_of(rows: pl.DataFrame, context: Sequence[str]) -> list[Any]:
    """Return the context of each row: a column's value, or an object of several columns."""
    # Older writers leave texts as bytes.
    texts = [
        pl.Series(name, map(_text_of, rows[name].to_list()), dtype=pl.String)
        for name in context
        if rows.schema[name] == pl.Binary
    ]
    rows = rows.select(context).with_columns(texts)
    return rows[context[0]].to_list() if len(context) == 1 else rows.to_dicts()


def _text_of(cell: bytes | None) -> str | None:
    """Return the text of a cell's bytes; ``None`` where they are not UTF-8."""
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def write_rows(
    rows: pl.LazyFrame, path: Path, raw: Sequence[str] = (), parts: Iterable[pl.DataFrame] = ()
) -> None:
    """Write rows as a file in the format of its ending: whole, or not at all.

    ``raw`` names the columns whose cells are JSON: they become those values again, and texts where
    the format or the other cells of a column do not take them. Then ``parts`` are the rows too.
    Lists and objects become JSON in CSV; bytes become base64.
    """
    partial = path.with_name(f".{path.name}.partial")
    suffix = path.suffix.lower()
    if raw and suffix in _LINES:
        _write_lines(parts, partial, raw)
    else:
        if raw:
            rows = rows.with_columns(_plain_columns(rows, raw, are_texts=suffix != ".parquet"))
        if suffix != ".parquet":
            rows = rows.with_columns(_as_texts(rows, are_flat=suffix not in _LINES))
        if suffix == ".parquet":
            rows.sink_parquet(partial)
        elif suffix in _LINES:
            rows.sink_ndjson(partial)
        else:
            # The mark by which spreadsheets know UTF-8, as in every CSV that is exported.
            rows.sink_csv(partial, separator=_DELIMITERS[suffix], include_bom=suffix == ".csv")
    flush(partial)
    partial.replace(path)
    flush(path.parent)


def _as_texts(rows: pl.LazyFrame, *, are_flat: bool) -> list[pl.Expr]:
    """Return the columns that a format of texts cannot write otherwise, as it can."""
    texts = []
    for name, kind in rows.collect_schema().items():
        column = pl.col(name)
        if kind == pl.Duration and are_flat:
            texts.append(column.dt.to_string("iso"))
        elif kind == pl.Binary:
            texts.append(column.bin.encode("base64"))
        elif kind.is_nested() and (are_flat or "Binary" in str(kind)):
            texts.append(column.map_batches(_as_json, return_dtype=pl.String, is_elementwise=True))
    return texts


def _as_json(cells: pl.Series) -> pl.Series:
    values = (None if cell is None else _encoded(cell) for cell in cells.to_list())
    return pl.Series(cells.name, map(_raw, values), dtype=pl.String)


def _base64(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _raw_batch(rows: Sequence[tuple[int, Any]], context: Sequence[str]) -> RowColumns:
    names = dict.fromkeys(name for _, values in rows for name in values)
    check_size(len(names), len(rows))
    frame = pl.DataFrame(
        {name: [_raw(values.get(name)) for _, values in rows] for name in names},
        schema=dict.fromkeys(names, pl.String),
    )
    contexts = [
        json.loads(bytes(values[context[0]]))
        if len(context) == 1
        else {name: json.loads(bytes(values[name])) for name in context}
        for _, values in rows
    ]
    return RowColumns(frame, contexts)


def is_cut(value: msgspec.Raw) -> bool:
    """Return whether a value as JSON has it has half a character."""
    raw = bytes(value)
    return b"\\u" in raw and has_lone_surrogate(json.dumps(json.loads(raw), ensure_ascii=False))


def _encoded(cell: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(cell, ensure_ascii=False, default=_base64).encode())


def _raw(value: msgspec.Raw | None) -> str | None:
    return None if value is None else bytes(value).decode()


def _write_lines(parts: Iterable[pl.DataFrame], path: Path, raw: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for part in parts:
            names = [name for name in raw if name in part.columns]
            encoded = [json.dumps(name, ensure_ascii=False) for name in names]
            answers = part.drop(names).write_ndjson().split("\n")[:-1]
            values = zip(*(part[name].to_list() for name in names), strict=True)
            for cells, answer in zip(values, answers, strict=True):
                fields = [
                    f"{name}:{cell}" for name, cell in zip(encoded, cells, strict=True) if cell
                ]
                file.write(f"{{{','.join([*fields, answer[1:]])}\n")


def _plain_columns(rows: pl.LazyFrame, raw: Sequence[str], *, are_texts: bool) -> list[pl.Expr]:
    """Return columns of JSON as values of one type each, or as texts."""
    if are_texts:
        return [
            pl.col(name).map_batches(_texts, return_dtype=pl.String, is_elementwise=True)
            for name in raw
        ]
    columns = []
    frame = rows.select(raw).collect(engine="streaming")
    for name in raw:
        cells = frame[name].to_list()
        type_ = _type_of(cells)
        values = pl.Series(name, [_value(cell, type_) for cell in cells], dtype=type_, strict=True)
        columns.append(pl.lit(values).alias(name))
    return columns


def _texts(cells: pl.Series) -> pl.Series:
    values = (_value(cell, pl.String()) for cell in cells.to_list())
    return pl.Series(cells.name, values, dtype=pl.String)


def _type_of(cells: Sequence[str | None]) -> Any:
    """Return the type that takes all cells exactly; text where none does."""
    values = [json.loads(cell) for cell in cells if cell is not None and cell != "null"]
    types = {type(value) for value in values}
    if types == {bool}:
        return pl.Boolean()
    if types == {int} and all(-_LARGEST <= value <= _LARGEST for value in values):
        return pl.Int64()
    if types == {float}:
        return pl.Float64()
    return pl.String()


def _value(cell: str | None, type_: Any) -> Any:
    if cell is None or cell == "null":
        return None
    if type_ != pl.String():
        return json.loads(cell)
    return json.loads(cell) if cell.startswith('"') else cell
