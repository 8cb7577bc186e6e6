"""Rows of CSV, JSON Lines and Parquet files, some at a time, and scored rows as such a file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from steelyard.client.tables.unpacked import UnpackedBytes, parquet_batches
from steelyard.durable import flush

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LINES = frozenset({".jsonl", ".ndjson"})
FORMATS = frozenset({*_DELIMITERS, *_LINES, ".parquet"})
#: A row of text is at most this many bytes.
_BLOCK_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows as columns, and the context of each as it is sent."""

    rows: pl.DataFrame
    contexts: list[Any]


def check_format(path: Path) -> None:
    """Raise ``ValueError`` when a file's ending names no format."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path} is in no known format; end its name in {sorted(FORMATS)}.")


def column_names(path: Path) -> list[str] | None:
    """Return the columns of a file, or ``None`` when each row names its own."""
    suffix = path.suffix.lower()
    if suffix in _LINES:
        return None
    if suffix == ".parquet":
        return list(pq.read_schema(path).names)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=_DELIMITERS[suffix]), [])
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read: {error}. Save it as CSV in UTF-8.") from error
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"{path} has several columns {min(repeated)!r}; rename all but one.")
    return names


def count_rows(path: Path) -> int:
    """Return how many rows a file has, at most: a text with line ends counts as several."""
    if path.suffix.lower() == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    with path.open("rb") as file:
        n_lines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    return max(n_lines, 1)


def batches_of(
    path: Path, context: Sequence[str], n_rows: int, *, start: int = 0
) -> Iterator[Batch]:
    """Yield the rows of a file from ``start``, ``n_rows`` at a time.

    A context of one column is that column's value, and one of several an object of them. Raise
    ``ValueError``, naming the line, when a row cannot be read.
    """
    if path.suffix.lower() in _LINES:
        yield from _batches_of_lines(path, context, n_rows, start)
        return
    held: list[pl.DataFrame] = []
    n_held = 0
    for frame in _frames(path, n_rows):
        skipped = min(start, frame.height)
        start -= skipped
        held.append(frame.slice(skipped))
        n_held += held[-1].height
        while n_held >= n_rows:
            joined = pl.concat(held)
            yield _batch(joined.slice(0, n_rows), context)
            held, n_held = [joined.slice(n_rows)], n_held - n_rows
    if n_held:
        yield _batch(pl.concat(held), context)


def write_rows(rows: pl.LazyFrame, path: Path) -> None:
    """Write rows as a file in the format of its ending: whole, or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        rows.sink_parquet(partial)
    elif suffix in _LINES:
        rows.sink_ndjson(partial)
    else:
        rows.sink_csv(partial, separator=_DELIMITERS[suffix])
    flush(partial)
    partial.replace(path)
    flush(path.parent)


def contexts_of(rows: pl.DataFrame, context: Sequence[str]) -> list[Any]:
    """Return the context of each row: a column's value, or an object of several columns."""
    if len(context) == 1:
        return rows[context[0]].to_list()
    return rows.select(context).to_dicts()


def _batch(rows: pl.DataFrame, context: Sequence[str]) -> Batch:
    return Batch(rows, contexts_of(rows, context))


def _frames(path: Path, n_rows: int) -> Iterator[pl.DataFrame]:
    if path.suffix.lower() == ".parquet":
        part = UnpackedBytes(str(path))
        with path.open("rb") as file:
            for batch in parquet_batches(file, part, n_rows=n_rows):
                # Rows are answered some at a time, so that the bound is for those at one time.
                part.n_bytes = 0
                yield pl.DataFrame(batch)
        return
    names = column_names(path) or []
    try:
        reader = pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=_DELIMITERS[path.suffix.lower()], newlines_in_values=True
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string())
            ),
        )
        with reader:
            for batch in reader:
                yield pl.DataFrame(batch)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {error}. Save it as CSV in UTF-8.") from error


def _batches_of_lines(
    path: Path, context: Sequence[str], n_rows: int, start: int
) -> Iterator[Batch]:
    with path.open("rb") as file:
        numbered = ((number, line) for number, line in enumerate(file, 1) if line.strip())
        left = islice(numbered, start, None)
        while lines := list(islice(left, n_rows)):
            rows = [_row_of(path, number, line) for number, line in lines]
            for (number, _), row in zip(lines, rows, strict=True):
                missing = [name for name in context if name not in row]
                if missing:
                    raise ValueError(f"Line {number} of {path} has no field {missing[0]!r}.")
            frame = pl.from_dicts(
                [{name: _flat(value) for name, value in row.items()} for row in rows],
                infer_schema_length=None,
                strict=False,
            )
            contexts = [
                row[context[0]] if len(context) == 1 else {name: row[name] for name in context}
                for row in rows
            ]
            yield Batch(frame, contexts)


def _row_of(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"Line {number} of {path} is no JSON object: {error}.") from None


def _flat(value: Any) -> Any:
    """Return a value of one cell: objects and lists as JSON, since rows may differ in them."""
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value
