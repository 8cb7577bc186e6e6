"""Parquet and Arrow files as tables, with the names that ``datasets`` keeps of classes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc

from steelyard.imports.table import ArrowRows, Table, unique_names
from steelyard.imports.unpacked import UnpackedBytes, check_size, decoded_bytes, read_parquet

#: The metadata of an Arrow schema in which ``datasets`` describes its columns.
_FEATURES = b"huggingface"


def parquet_table(file: BinaryIO, name: str, unpacked: UnpackedBytes) -> Table:
    """Return the rows of a Parquet file."""
    try:
        table = read_parquet(file, unpacked)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{name} cannot be read as Parquet: {error}.") from error
    return _table(table, "Parquet")


def arrow_table(path: Path, unpacked: UnpackedBytes) -> Table:
    """Return the rows of an Arrow file as ``datasets`` saves them."""
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            batches, n_rows = [], 0
            check_size(len(stream.schema))
            for batch in stream:
                n_rows += batch.num_rows
                check_size(len(stream.schema), n_rows)
                unpacked.add(sum(map(decoded_bytes, batch.columns)))
                batches.append(batch)
            table = pa.Table.from_batches(batches, stream.schema)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path.name} cannot be read as Arrow: {error}.") from error
    return _table(table, "Arrow")


def _table(table: pa.Table, read_as: str) -> Table:
    columns, notes = unique_names(table.column_names)
    for place, column in reversed(list(enumerate(table.columns))):
        if (texts := _texts_of(column)) is not None:
            # Older writers leave texts as bytes.
            table = table.set_column(place, table.field(place).with_type(texts.type), texts)
        else:
            notes.append(
                f"The column {columns[place]} has bytes that are not text; it is left out."
            )
            table = table.remove_column(place)
            columns = (*columns[:place], *columns[place + 1 :])
    classes = _class_names(table.schema)
    convert = {
        place: partial(_class_name, names=classes[name])
        for place, name in enumerate(table.column_names)
        if name in classes
    }
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"The column {name} cannot be read: {error}. Write the file again."
            ) from None
    return Table(columns, ArrowRows(table, convert=convert), [], read_as, notes)


def _texts_of(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return cells that are bytes as the texts that they are in UTF-8, ``None`` where they are none."""
    if not any(
        check(column.type)
        for check in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        )
    ):
        return column
    try:
        return column.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        return None


def _class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of the classes of columns that ``datasets`` keeps as numbers, or lists of them."""
    try:
        metadata = json.loads((schema.metadata or {}).get(_FEATURES, b"{}"))
        features = dict(metadata.get("info", {}).get("features", {}))
    except (ValueError, AttributeError, TypeError):
        return {}
    class_names = {column: _names_of(feature) for column, feature in features.items()}
    return {column: names for column, names in class_names.items() if names is not None}


def _names_of(feature: Any) -> list[str] | None:
    if isinstance(feature, list) and len(feature) == 1:
        return _names_of(feature[0])
    if not isinstance(feature, Mapping):
        return None
    if feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list):
        return list(map(str, feature["names"]))
    return _names_of(feature.get("feature"))


def _class_name(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [name for item in value if (name := _class_name(item, names)) is not None]
    # -1 is how datasets says that a row has no label.
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else None
