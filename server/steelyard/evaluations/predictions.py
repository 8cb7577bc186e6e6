"""Predictions of evaluations as Parquet files, of ``steelyard.evaluations.prediction_columns``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.evaluations.prediction_columns import SCHEMA, Prediction
from steelyard.storage.frame_store import FrameStore

SUFFIX = ".parquet"


def write_predictions(store: FrameStore, predictions: Sequence[Prediction]) -> str:
    """Store predictions in a file of their own; return its hash. It is durable on return."""
    columns = [
        pa.array([getattr(one, field.name) for one in predictions], field.type) for field in SCHEMA
    ]
    return write_table(store, pa.table(columns, schema=SCHEMA))


def write_table(store: FrameStore, table: pa.Table) -> str:
    """Store a table of predictions; return its hash."""
    with store.draft() as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)
        return store.adopt(draft, SUFFIX)[0]


def read_table(
    store: FrameStore, hashes: Sequence[str], columns: Sequence[str] | None = None
) -> pa.Table:
    """Return the predictions of some files, one after the other."""
    schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    tables = [schema.empty_table()]
    for sha256 in hashes:
        with store.open(f"{sha256}{SUFFIX}") as file:
            with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
                held = set(parquet.schema_arrow.names)
                names = [name for name in schema.names if name in held]
                table = parquet.read(columns=names, use_threads=False)
            for field in schema:  # columns that files of earlier versions do not have
                if field.name not in held:
                    table = table.append_column(field, pa.nulls(len(table), field.type))
            tables.append(table.select(schema.names).cast(schema))
    return pa.concat_tables(tables)


def scored_rows(store: FrameStore, hashes: Sequence[str]) -> set[int]:
    """Return the places of the rows that files hold predictions of."""
    return set(read_table(store, hashes, ["row"])["row"].to_pylist())


def merge(store: FrameStore, hashes: Sequence[str]) -> pa.Table:
    """Return the predictions of some files in dataset order and then decision order."""
    return read_table(store, hashes).sort_by([("row", "ascending"), ("place", "ascending")])
