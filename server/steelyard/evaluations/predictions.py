"""Predictions of evaluations as Parquet files, of ``steelyard.evaluations.prediction_columns``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steelyard.evaluations.prediction_columns import SCHEMA, Prediction
from steelyard.storage.frame_store import FrameStore

SUFFIX = ".parquet"


def write_predictions(store: FrameStore, predictions: Sequence[Prediction]) -> str:
    """Store predictions in a file of their own; return its hash. It is durable on return."""
    columns = [
        pa.array([getattr(prediction, field.name) for prediction in predictions], field.type)
        for field in SCHEMA
    ]
    return write_table(store, pa.table(columns, schema=SCHEMA))


def write_table(store: FrameStore, table: pa.Table) -> str:
    """Store a table of predictions; return its hash."""
    with store.draft() as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)
        return store.adopt(draft, SUFFIX)[0]


def join_files(store: FrameStore, hashes: Sequence[str]) -> str:
    """Store the predictions of some files in one, a file in memory at a time; return its hash."""
    with store.draft() as draft:
        with pq.ParquetWriter(
            draft, SCHEMA, compression="zstd", write_page_checksum=True
        ) as writer:
            for sha256 in hashes:
                table = read_table(store, [sha256])
                writer.write_table(table, row_group_size=max(1, len(table)))
        return store.adopt(draft, SUFFIX)[0]


def read_table(
    store: FrameStore, hashes: Sequence[str], columns: Sequence[str] | None = None
) -> pa.Table:
    """Return the predictions of some files, one after the other."""
    schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    tables = [table for sha256 in hashes for table in read_groups(store, sha256, schema)]
    return pa.concat_tables([schema.empty_table(), *tables])


def read_groups(store: FrameStore, sha256: str, schema: pa.Schema = SCHEMA) -> Iterator[pa.Table]:
    """Yield the predictions of a file, as many at a time as were written together."""
    with (
        store.open(f"{sha256}{SUFFIX}") as file,
        pq.ParquetFile(file, page_checksum_verification=True) as parquet,
    ):
        stored_names = set(parquet.schema_arrow.names)
        names = [name for name in schema.names if name in stored_names]
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, columns=names, use_threads=False)
            for field in schema:  # columns that files of earlier versions do not have
                if field.name not in stored_names:
                    table = table.append_column(field, pa.nulls(len(table), field.type))
            yield table.select(schema.names).cast(schema)


def count_predictions(store: FrameStore, sha256: str) -> int:
    """Return how many predictions a file holds."""
    with store.open(f"{sha256}{SUFFIX}") as file:
        return int(pq.read_metadata(file).num_rows)


@dataclass(frozen=True, slots=True)
class PredictionSample:
    """Predictions of some contexts, or of all: then ``share`` is ``None``."""

    table: pa.Table
    share: float | None


def read_sample(store: FrameStore, sha256: str, most: int) -> PredictionSample:
    """Return the predictions of a file, or about ``most`` of them: all those of some contexts.

    Contexts are chosen by their hashes, so that the files of two models on the same rows give the
    same ones. Columns that were not selected are never in memory together.
    """
    n = count_predictions(store, sha256)
    if n <= most:
        return PredictionSample(read_table(store, [sha256]), None)
    share = most / n
    while True:
        # Hexadecimal digits are in the order of the number that they spell.
        bound = f"{int(min(share, 1) * 2**64):016x}"
        chosen = [
            table.filter(pc.less(table["context_sha256"], bound)) if share < 1 else table
            for table in read_groups(store, sha256)
        ]
        table = pa.concat_tables(chosen)
        if len(table):
            return PredictionSample(table, min(share, 1.0))
        share *= 2  # a few contexts have all the decisions


def scored_rows(store: FrameStore, hashes: Sequence[str]) -> set[int]:
    """Return the places of the rows that files hold predictions of."""
    return set(read_table(store, hashes, ["row"])["row"].to_pylist())


def merge(store: FrameStore, hashes: Sequence[str]) -> pa.Table:
    """Return the predictions of some files in dataset order and then decision order."""
    return read_table(store, hashes).sort_by([("row", "ascending"), ("place", "ascending")])
