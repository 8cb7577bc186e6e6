"""Reading a version as a lazy frame, with predicates and projections pushed down to its files."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import polars as pl

from steelyard.datasets.definitions import Definition
from steelyard.datasets.frames.rows import STORED_SCHEMA
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Partition
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decode


def scan(store: FrameStore, manifest: Manifest, partition: Partition = "all") -> pl.LazyFrame:
    """Return the rows of a version, lazily; nothing is read before it is collected."""
    names = manifest.part_names(partition)
    paths = [store.path_of(name) for name in names]
    if not paths:
        return pl.DataFrame(pl.from_arrow(STORED_SCHEMA.empty_table())).lazy()
    if store.is_local:
        return pl.scan_parquet(paths, glob=False)
    # Slow to import, and of use in an object store alone.
    import pyarrow.dataset as pads  # noqa: PLC0415

    with store.reading(*names):
        dataset = pads.dataset(
            paths, schema=STORED_SCHEMA, filesystem=store.filesystem, format="parquet"
        )
    return pl.scan_pyarrow_dataset(dataset)


def load_definitions(store: FrameStore, manifest: Manifest) -> list[Definition]:
    """Return every wording of the decisions that a version asks, by decision id."""
    data = store.read(f"{manifest.definitions}.json")
    return decode(data, list[Definition])


def load_metadata(
    store: FrameStore, manifest: Manifest, partition: Partition
) -> list[dict[str, Any]]:
    """Return the metadata of the rows of a side, each once; an empty object where a row has none."""
    with store.reading(*manifest.part_names(partition)):
        extras = scan(store, manifest, partition).select(pl.col("extra").unique()).collect()
    return [
        (msgspec.json.decode(text).get("metadata") if text else None) or {}
        for text in extras["extra"]
    ]


def load_retired(store: FrameStore, manifest: Manifest | None) -> pl.DataFrame | None:
    """Return the hashes of removed rows; ``None`` when there are none."""
    if manifest is None or manifest.retired is None:
        return None
    return pl.read_parquet(io.BytesIO(store.read(f"{manifest.retired}.parquet")))
