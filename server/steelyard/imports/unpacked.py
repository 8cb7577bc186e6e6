"""How much a file may become when it is unpacked: bounds that every reader of files applies.

Excel, zip and Parquet files say a value once and repeat it at almost no cost, so that the size of a
file says nothing about its contents. Each function here counts the bytes before, or while, they are
unpacked, and raises ``ValueError`` at the bound.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: Bytes that the contents of one file may take, unpacked.
MAX_UNPACKED_BYTES = 256 * 1024 * 1024
#: Columns of a table, and cells of one whose rows name their own columns: a lacking one takes room too.
MAX_COLUMNS, MAX_CELLS = 4_096, 20_000_000
#: Characters of the cells of an Excel sheet, which is in memory several times.
MAX_SHEET_CHARACTERS = 64 * 1024 * 1024
#: Rows of Parquet that are decoded at a time, at most.
BATCH_ROWS = 4_096
#: Bytes that any cell takes, be it empty.
CELL_BYTES = 8
_CHUNK_BYTES = 1 << 20
_PAGE_HEADER_BYTES = 32
_DICTIONARY_PAGE = 2


@dataclass(slots=True)
class UnpackedBytes:
    """Counts the unpacked bytes of a file, or of its parts; over ``bound`` the file is refused."""

    name: str
    bound: int = MAX_UNPACKED_BYTES
    n_bytes: int = 0

    def add(self, n_bytes: int) -> None:
        """Count bytes; raise ``ValueError`` beyond the bound."""
        self.check(n_bytes)
        self.n_bytes += n_bytes

    def check(self, n_bytes: int) -> None:
        """Raise ``ValueError`` when so many more bytes would be beyond the bound; count nothing."""
        if self.n_bytes + n_bytes > self.bound:
            size = f"{self.bound >> 20} MiB" if self.bound >> 20 else f"{self.bound} bytes"
            raise ValueError(
                f"{self.name} unpacks to more than {size}. Split it into several files."
            )


def check_size(n_columns: int, n_rows: int = 0) -> None:
    """Raise ``ValueError`` when a table would be too wide, or has too many cells for its width."""
    if n_columns > MAX_COLUMNS:
        raise ValueError(
            f"The table has over {MAX_COLUMNS:,} columns; leave out those that are no context or label."
        )
    if n_rows * n_columns > MAX_CELLS:
        raise ValueError(
            f"The table has {n_rows:,} rows of {n_columns:,} columns, over {MAX_CELLS:,} cells. Split it "
            "into several files, or leave out columns."
        )


def check_zip(archive: zipfile.ZipFile, unpacked: UnpackedBytes) -> None:
    """Raise ``ValueError`` when the entries of a zip unpack to more than the bound.

    The sizes that the archive states are added first. Then each entry is unpacked, and nothing of it
    kept: the statement may be wrong, and other libraries unpack an entry to its end.
    """
    entries = archive.infolist()
    unpacked.check(sum(entry.file_size for entry in entries))
    for entry in entries:
        for chunk in entry_chunks(archive, entry, unpacked.bound):
            unpacked.add(len(chunk))


def entry_chunks(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, bound: int = MAX_UNPACKED_BYTES
) -> Iterator[bytes]:
    """Yield an entry of a zip piece by piece, up to a bound, whatever size the archive states."""
    endless = copy(entry)
    endless.file_size = bound + 1
    with archive.open(endless) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def parquet_batches(
    file: BinaryIO, unpacked: UnpackedBytes, *, n_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file as they are decoded, counting the bytes of each batch."""
    with pq.ParquetFile(file) as parquet:
        footer = parquet.metadata
        check_size(len(parquet.schema_arrow))
        per_row, nested = 0, set()
        for group in range(footer.num_row_groups):
            largest = 0
            for column in range(footer.num_columns):
                chunk, leaf = footer.row_group(group).column(column), parquet.schema.column(column)
                if leaf.max_repetition_level:
                    unpacked.check(chunk.num_values * CELL_BYTES)
                    group_rows = max(footer.row_group(group).num_rows, 1)
                    largest += chunk.num_values * CELL_BYTES // group_rows
                value_bytes = _largest_value(file, chunk)
                if not leaf.max_repetition_level:
                    largest += value_bytes
                elif chunk.num_values * value_bytes > unpacked.bound:
                    nested.add(leaf.path)
            per_row = max(per_row, largest)
        n_rows = max(min(n_rows, unpacked.bound // (4 * max(per_row, 1))), 1)
        with pq.ParquetFile(file, read_dictionary=sorted(nested)) as columns:
            for batch in columns.iter_batches(batch_size=n_rows):
                unpacked.add(sum(map(decoded_bytes, batch.columns)))
                yield batch.cast(parquet.schema_arrow) if nested else batch


def read_parquet(file: BinaryIO, unpacked: UnpackedBytes) -> pa.Table:
    """Return the rows of a Parquet file; raise ``ValueError`` when they take more than the bound."""
    footer = pq.read_metadata(file)
    check_size(len(footer.schema.to_arrow_schema()), footer.num_rows)
    batches = list(parquet_batches(file, unpacked))
    return pa.Table.from_batches(batches, batches[0].schema if batches else pq.read_schema(file))


def decoded_bytes(array: Any) -> int:
    """Return the bytes of an array's values once each is an object of its own.

    >>> decoded_bytes(pa.array(["abc", "abc"]).dictionary_encode())
    22
    """
    kind = array.type
    n_bytes = CELL_BYTES * len(array)
    if pa.types.is_dictionary(kind):
        if _is_text(kind.value_type):
            lengths = pc.fill_null(pc.binary_length(array.dictionary), 0)
            n_bytes += pc.sum(pc.take(lengths, array.indices)).as_py() or 0
        return n_bytes
    if pa.types.is_struct(kind):
        return n_bytes + sum(map(decoded_bytes, array.flatten()))
    if pa.types.is_map(kind):
        return n_bytes + decoded_bytes(array.keys) + decoded_bytes(array.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return n_bytes + decoded_bytes(array.flatten())
    return n_bytes + int(array.nbytes)


def _is_text(kind: Any) -> bool:
    return any(
        check(kind)
        for check in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


def _largest_value(file: BinaryIO, chunk: Any) -> int:
    """Return the most bytes that a text of a column chunk can have and be repeated at no cost.

    It is the size of the dictionary, as the header of its page says it (parquet.thrift); texts that
    are written one by one are counted as 0, since all of them are no longer than the chunk.
    """
    if chunk.physical_type != "BYTE_ARRAY":
        return 0
    if "DELTA_BYTE_ARRAY" in chunk.encodings:
        return int(chunk.total_uncompressed_size)
    offsets = (chunk.data_page_offset, chunk.dictionary_page_offset)
    file.seek(min(offset for offset in offsets if offset))
    header = file.read(_PAGE_HEADER_BYTES)
    kind, at = _thrift_i32(header, 0)
    n_bytes, _ = _thrift_i32(header, at)
    return n_bytes if kind == _DICTIONARY_PAGE else 0


def _thrift_i32(data: bytes, at: int) -> tuple[int, int]:
    """Return the 32-bit field of a compact Thrift struct that begins at an offset, and its end."""
    value = shift = 0
    for end, byte in enumerate(data[at + 1 : at + 6], at + 2):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), end
    raise ValueError("A page of the Parquet file has no readable header; save it again.")
