"""Rows as a review reads them: with their side, and their labels apart from the rest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.datasets.frames.rows import SENT_COLUMNS, encode_rows
from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Side
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.origins import LabelledBy, origins_of


def tasks_of(store: FrameStore, manifest: Manifest, places: NDArray[np.int64]) -> list[str]:
    """Return every list of decisions that some rows ask, as JSON, each once."""
    selected = pl.Series("index", places, dtype=pl.Int64).to_frame().lazy()
    with store.reading(*manifest.part_names()):
        frame = scan(store, manifest).select("index", "decisions").join(selected, on="index")
        return frame.select("decisions").unique().collect()["decisions"].to_list()


def decisions_at(
    store: FrameStore, manifest: Manifest, places: NDArray[np.int64]
) -> dict[int, str]:
    """Return the decisions that some rows ask, as JSON, by place."""
    selected = pl.Series("index", places, dtype=pl.Int64).to_frame().lazy()
    with store.reading(*manifest.part_names()):
        frame = scan(store, manifest).select("index", "decisions").join(selected, on="index")
        decisions = frame.collect()
    return dict(zip(decisions["index"].to_list(), decisions["decisions"].to_list(), strict=True))


def labelled_by(store: FrameStore, manifest: Manifest, by: LabelledBy) -> NDArray[np.int64]:
    """Return the places of the rows whose labels came from somewhere, by ``by`` of their metadata."""
    path = pl.col("extra").str.json_path_match("$.metadata.by")
    with store.reading(*manifest.part_names()):
        frame = scan(store, manifest).select("index", by=path).collect()
    texts = [text for text in frame["by"].unique() if by in origins_of({"by": text})]
    chosen = frame.filter(pl.col("by").is_in(texts, nulls_equal=True))
    places: NDArray[np.int64] = chosen["index"].to_numpy()
    return places


def iterate_side(
    store: FrameStore, manifest: Manifest, side: Side, places: NDArray[np.int64] | None = None
) -> Iterator[tuple[NDArray[np.int64], list[bytes]]]:
    """Yield the rows of a side as JSON, with their places, a part of the version at a time."""
    for part in manifest.parts_of(side):
        with store.open(f"{part.sha256}.parquet") as file:
            frame = pl.read_parquet(file, columns=["index", *SENT_COLUMNS])
        if places is not None:
            frame = frame.filter(pl.Series(np.isin(frame["index"].to_numpy(), places)))
        table = frame.to_arrow()
        yield frame["index"].to_numpy(), list(encode_rows(table, manifest.method))
