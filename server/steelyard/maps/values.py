"""The colours of a map's points: labels of a decision, and a model's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.versions import Manifest
from steelyard.maps.wire import MAX_OUTCOMES, NONE, OTHER
from steelyard.storage.frame_store import FrameStore


def expected_outcomes(
    store: FrameStore, manifest: Manifest, decision: str, indexes: NDArray[np.int64]
) -> list[str | None]:
    """Return the labelled outcomes of rows, in the order of ``indexes``; it blocks."""
    entry = pl.element().struct
    is_top = entry.field("decision").eq(decision) & entry.field("is_top")
    outcome = pl.col("labels").list.eval(entry.field("outcome").filter(is_top)).list.first()
    with store.reading(*manifest.part_names()):
        frame = scan(store, manifest).select("index", outcome.alias("outcome")).collect()
    return _at(frame, indexes)["outcome"].to_list()


def answered_outcomes(
    predictions: pl.DataFrame, rows: NDArray[np.int64], indexes: NDArray[np.int64]
) -> pl.DataFrame:
    """Return the answered outcomes, whether they are right, and their probabilities, by ``indexes``.

    ``predictions`` are of one decision: ``row``, ``outcomes``, ``probabilities`` and ``labels``.
    ``rows`` are the places in the dataset of the evaluation rows.
    """
    top = pl.col("probabilities").list.arg_max()
    answered = predictions.select(
        pl.col("row").replace_strict(list(range(len(rows))), rows.tolist()).alias("index")
        if len(predictions)
        else pl.col("row").alias("index"),
        pl.col("outcomes").list.get(top).alias("answered"),
        pl.col("labels").list.arg_max().eq(top).alias("is_right"),
        pl.col("probabilities").list.max().round(4).alias("confidence"),
    )
    return _at(answered, indexes)


def most_frequent(*columns: Iterable[str | None]) -> list[str]:
    """Return the most frequent names of some columns, the most frequent first.

    >>> most_frequent(["b", "a", None, "a"], ["c"])
    ['a', 'b', 'c']
    """
    counts = Counter(name for column in columns for name in column if name is not None)
    return sorted(counts, key=lambda name: (-counts[name], name))[:MAX_OUTCOMES]


def places_of(names: Iterable[str | None], outcomes: list[str]) -> list[int]:
    """Return the place of each name among outcomes.

    >>> places_of(["b", None, "z"], ["a", "b"])
    [1, -1, -2]
    """
    places: dict[str | None, int] = {name: place for place, name in enumerate(outcomes)}
    places[None] = NONE
    return [places.get(name, OTHER) for name in names]


def _at(frame: pl.DataFrame, indexes: NDArray[np.int64]) -> pl.DataFrame:
    data_frame = pl.DataFrame({"index": indexes})
    return data_frame.join(
        frame.with_columns(pl.col("index").cast(pl.Int64)),
        on="index",
        how="left",
        maintain_order="left",
    )
