"""Write a table piece by piece: memory does not grow with its rows."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.exports.hub_folder import README, card, coded, coded_schema, path_of
from steelyard.exports.table import Batches, ExportTable
from steelyard.wire.csv_cells import guard
from steelyard.wire.queries import ExportFormat

#: What each format is sent as; the folder of ``datasets`` comes packed.
MEDIA_TYPES: dict[ExportFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "hf": "application/zip",
}
#: Bytes of a piece, so that a thread's turn is worth it.
_PIECE_BYTES = 256 * 1024
#: Rows and bytes of a group of Parquet rows, whichever is full first.
_GROUP_ROWS, _GROUP_BYTES = 4096, 8 * 1024 * 1024
#: The oldest time that a zip can say: the same rows are the same bytes whenever they are asked for.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_BOM = "\ufeff"


def export_pieces(table: ExportTable, format_: ExportFormat) -> Iterator[bytes]:
    """Yield a table in a format, in pieces that are made as they are asked for."""
    sink = _Sink()
    if format_ == "csv":
        writing = _write_csv(sink, table)
    elif format_ == "parquet":
        writing = _write_parquet(sink, table.schema, table.rows())
    else:
        writing = _write_folder(sink, table)
    for _ in writing:
        if sink.held >= _PIECE_BYTES:
            yield sink.take()
    if sink.held:
        yield sink.take()


class _Sink(io.RawIOBase):
    """A file that cannot be gone back in, whose bytes are taken out as they come."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._written = 0
        self.held = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._written += len(piece)
        self.held += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        data = b"".join(self._pieces)
        self._pieces, self.held = [], 0
        return data


def _write_csv(sink: _Sink, table: ExportTable) -> Iterator[None]:
    """Write CSV with a byte order mark, by which spreadsheets know UTF-8."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    text.write(_BOM)
    writer.writerow([guard(column.name) for column in table.columns])
    writers = [_cell_writer(column.type) for column in table.columns]
    for batch in table.rows():
        columns = [
            [None if cell is None else write(cell) for cell in column.to_pylist()]
            for write, column in zip(writers, batch.columns, strict=True)
        ]
        writer.writerows(zip(*columns, strict=True))
        sink.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()
        yield
    sink.write(text.getvalue().encode())


def _cell_writer(type_: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_nested(type_):
        return lambda cell: msgspec.json.encode(cell).decode()
    if pa.types.is_boolean(type_):
        return lambda cell: "true" if cell else "false"
    if pa.types.is_timestamp(type_):
        return datetime.isoformat
    return guard if pa.types.is_string(type_) else lambda cell: cell


def _write_parquet(sink: Any, schema: pa.Schema, batches: Batches) -> Iterator[None]:
    # Given as a file of Arrow's: a Python file that is only written needs no more.
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        buffered: list[pa.RecordBatch] = []
        for batch in batches:
            buffered.append(batch)
            n_rows = sum(part.num_rows for part in buffered)
            if n_rows >= _GROUP_ROWS or sum(part.nbytes for part in buffered) >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(buffered, schema), row_group_size=n_rows)
                buffered = []
                yield
        if buffered:
            writer.write_table(pa.Table.from_batches(buffered, schema))
    yield


def _write_folder(sink: _Sink, table: ExportTable) -> Iterator[None]:
    """Write a zip of a folder: a card, and a Parquet file for each part that has rows."""
    schema = coded_schema(table)
    with zipfile.ZipFile(sink, "w") as archive:
        has_rows = {
            name: any(batch.num_rows for batch in make()) for name, make in table.splits.items()
        }
        # An empty table gets one empty part, so that a reader sees its columns.
        filled = [name for name in has_rows if has_rows[name]]
        names = filled or list(has_rows)[:1]
        archive.writestr(_member(README), card(table, names, has_rows=bool(filled)))
        yield
        for name in names:
            with archive.open(_member(path_of(name)), "w", force_zip64=True) as file:
                batches = (coded(table, batch, schema) for batch in table.splits[name]())
                yield from _write_parquet(file, schema, batches)


def _member(path: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(path, _ZIP_TIME)
    member.external_attr = 0o644 << 16
    return member
