"""A version's rows as one Parquet file, for notebooks and other tools."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.labels import SUPERVISION_OF
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Partition
from steelyard.storage.frame_store import FrameStore

_READ_BYTES = 256 * 1024


def export_parquet(
    store: FrameStore, manifest: Manifest, partition: Partition = "all"
) -> Iterator[bytes]:
    """Yield a Parquet file of a version's rows, in the order of the dataset, a piece at a time.

    Its columns are ``index``, ``side``, ``context`` (the text, or compact JSON), ``is_text``,
    ``decisions``, ``images`` and ``extra`` (compact JSON), ``asked`` (decision ids), ``targets`` or
    ``rewards`` (a list of decision, outcome and value), ``context_sha256`` and ``row_sha256`` (hex).
    """
    labels = SUPERVISION_OF[manifest.method]
    value = pl.element().struct.with_fields().struct
    frame = (
        scan(store, manifest, partition)
        .select(
            "index",
            "side",
            "context",
            "is_text",
            "decisions",
            "images",
            "extra",
            "asked",
            pl.col("labels")
            .list.eval(pl.struct(*(value.field(name) for name in _LABEL)))
            .alias(labels),
            pl.col("context_sha256").bin.encode("hex"),
            pl.col("row_sha256").bin.encode("hex"),
        )
        .sort("index")
    )
    with store.draft() as draft:
        with store.reading(*manifest.part_names(partition)):
            frame.sink_parquet(draft, compression="zstd")
        with draft.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                yield piece


_LABEL = ("decision", "outcome", "value")
