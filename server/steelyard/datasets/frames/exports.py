"""A version's rows as a table to export, as the import, notebooks and other tools read it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steelyard.datasets.definitions import Definition
from steelyard.datasets.frames.scanning import load_definitions
from steelyard.datasets.labels import SUPERVISION_OF
from steelyard.datasets.versions import Manifest, Part
from steelyard.datasets.wire import SIDES, Partition, Side
from steelyard.exports import Column, ExportTable
from steelyard.storage.frame_store import FrameStore

#: Rows that are read at once, and bytes of a file that are read at once for them.
ROWS, _BUFFER = 256, 64 * 1024
_TEXT = pa.string()
_LABELS = pa.list_(pa.struct([("decision", _TEXT), ("outcome", _TEXT), ("value", pa.float64())]))
#: What ``datasets`` calls the sides.
_SPLITS: dict[Side, str] = {"training": "train", "evaluation": "test"}
_LABEL = ("decision", "outcome", "value")
_HEX = ("context_sha256", "row_sha256")


def export_table(
    store: FrameStore, manifest: Manifest, name: str, partition: Partition = "all"
) -> ExportTable:
    """Return a version's rows, in the order of the dataset, as a table to export.

    Its columns are ``index``, ``side``, ``context`` (the text, or compact JSON), ``is_text``,
    ``decisions``, ``images`` and ``extra`` (compact JSON), ``asked`` (decision ids), ``targets`` or
    ``rewards`` (a list of decision, outcome and value), ``context_sha256`` and ``row_sha256`` (hex),
    and for each decision a column of its id with the expected outcome.
    """
    columns = _fixed_columns(manifest)
    outcomes_by_id = _outcomes_by_id(load_definitions(store, manifest))
    taken = {column.name for column in columns}
    labels = {id_: _free_name(id_, taken) for id_ in outcomes_by_id}
    columns += [
        Column(labels[id_], _TEXT, f"expected outcome of the decision `{id_}`", names)
        for id_, names in outcomes_by_id.items()
    ]
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])

    def batches(sides: Sequence[Side]) -> Iterator[pa.RecordBatch]:
        streams = [_stream(store, manifest.parts_of(side)) for side in sides]
        for table in _merged(streams):
            yield _batch(table, manifest, labels, schema)

    sides: tuple[Side, ...] = SIDES if partition == "all" else (partition,)
    return ExportTable(
        title=name,
        about=(
            f"Version {manifest.version} of a dataset of Steelyard: {manifest.rows_of(partition)} "
            f"rows with {SUPERVISION_OF[manifest.method]}."
        ),
        columns=tuple(columns),
        rows=functools.partial(batches, sides),
        splits={_SPLITS[side]: functools.partial(batches, (side,)) for side in sides},
    )


def _fixed_columns(manifest: Manifest) -> list[Column]:
    supervision = SUPERVISION_OF[manifest.method]
    return [
        Column("index", pa.int64(), "place in the dataset, from 0"),
        Column("side", _TEXT, "training or evaluation"),
        Column("context", _TEXT, "the text, or the JSON of a context that is no text"),
        Column("is_text", pa.bool_(), "which of the two"),
        Column("decisions", _TEXT, "JSON of what the row asks"),
        Column("images", _TEXT, "JSON of the images, where there are any"),
        Column("extra", _TEXT, "JSON of the row's other fields, where there are any"),
        Column("asked", pa.list_(_TEXT), "ids of the decisions"),
        Column(supervision, _LABELS, "each outcome that is named, with its number"),
        Column("context_sha256", _TEXT, "hash of the context and its images"),
        Column("row_sha256", _TEXT, "hash of everything that tells duplicates"),
    ]


def _outcomes_by_id(definitions: Sequence[Definition]) -> dict[str, tuple[str, ...]]:
    """Return the outcomes of each decision, of all its wordings."""
    names_by_id: dict[str, dict[str, None]] = {}
    for definition in definitions:
        names_by_id.setdefault(definition.id, {}).update(dict.fromkeys(definition.outcomes))
    return {id_: tuple(names) for id_, names in names_by_id.items()}


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name for a column that no other has, and take it."""
    while name in taken:
        name = f"label_{name}"
    taken.add(name)
    return name


def _stream(store: FrameStore, parts: Sequence[Part]) -> Iterator[pa.Table]:
    for part in parts:
        with store.open(f"{part.sha256}.parquet") as file:
            parquet = pq.ParquetFile(file, buffer_size=_BUFFER, page_checksum_verification=True)
            for batch in parquet.iter_batches(ROWS, use_threads=False):
                table = pa.Table.from_batches([batch])
                # Texts of a damaged file may be no UTF-8, which Arrow itself does not look at.
                table.validate(full=True)
                yield table


def _merged(streams: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Yield the rows of streams, each in order of ``index``, in that order: a batch of each is held."""
    tables = [next(stream, None) for stream in streams]
    while waiting := [table for table in tables if table is not None]:
        # No stream has a row before this one that is not held.
        stop = min(table["index"][-1].as_py() for table in waiting)
        ready = []
        for at, table in enumerate(tables):
            if table is None:
                continue
            n_ready = int(np.searchsorted(table["index"].to_numpy(), stop, side="right"))
            ready.append(table.slice(0, n_ready))
            rest = table.slice(n_ready)
            tables[at] = rest if len(rest) else next(streams[at], None)
        yield pa.concat_tables(ready).sort_by("index")


def _batch(
    table: pa.Table, manifest: Manifest, labels: dict[str, str], schema: pa.Schema
) -> pa.RecordBatch:
    """Return stored rows as they are exported."""
    entries = table["labels"].combine_chunks()
    flat = pc.list_flatten(entries)
    parents = pc.list_parent_indices(entries).to_numpy()
    expected = flat.field("is_top").to_numpy(zero_copy_only=False)
    decisions = flat.field("decision").to_numpy(zero_copy_only=False)
    values = {name: table[name] for name in table.column_names if name != "labels"}
    values |= {name: pa.array([value.hex() for value in table[name].to_pylist()]) for name in _HEX}
    labels_column = pa.StructArray.from_arrays(
        [flat.field(name) for name in _LABEL], names=list(_LABEL)
    )
    offsets = pa.array(np.concatenate([[0], np.cumsum(pc.list_value_length(entries))]), pa.int32())
    values[SUPERVISION_OF[manifest.method]] = pa.ListArray.from_arrays(offsets, labels_column)
    for id_, name in labels.items():
        places = np.full(len(table), -1)
        chosen = np.flatnonzero(expected & (decisions == id_))
        places[parents[chosen]] = chosen
        values[name] = flat.field("outcome").take(pa.array(places, mask=places < 0))
    columns = [_combined(values[field.name]).cast(field.type) for field in schema]
    return pa.record_batch(columns, schema=schema)


def _combined(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
