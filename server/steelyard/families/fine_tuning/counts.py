"""Evaluation rows and decisions of a version, by whether a family has been judged on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Partition
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.methods import Method


@dataclass(frozen=True, slots=True)
class EvaluationCounts:
    """What there is to judge by."""

    new_rows: int
    earlier_rows: int
    new_decisions: int
    has_images: bool


def count_evaluation(
    store: FrameStore,
    manifest: Manifest,
    trained: Manifest | None,
    method: Method,
    learned: Sequence[Manifest] = (),
) -> EvaluationCounts:
    """Count the evaluation rows of a version; it blocks."""
    frame = scan(store, manifest, "evaluation")
    for one in learned:
        frame = frame.join(contexts_of(store, one, "training"), on="context_sha256", how="anti")
    judged = frame.select(pl.len())
    # A context is judged as a whole: a new row of one that was judged on before is no new one.
    if trained is not None:
        earlier = contexts_of(store, trained, "evaluation")
        frame = frame.join(earlier, on="context_sha256", how="anti")
    new = frame.select("index", "labels")
    decided = (
        new.explode("labels")
        .unnest("labels")
        .group_by("index", "decision")
        .agg(pl.col("value").n_unique())
    )
    if method == "reward":
        decided = decided.filter(pl.col("value") > 1)  # equal rewards decide nothing
    images = scan(store, manifest).select(pl.col("images").is_not_null().any())
    read = [manifest, *learned, *([] if trained is None else [trained])]
    with store.reading(*(name for one in read for name in one.part_names())):
        every, rows, decisions, has_images = pl.collect_all(
            [judged, new.select(pl.len()), decided.select(pl.len()), images]
        )
    n_new = int(rows.item())
    return EvaluationCounts(
        new_rows=n_new,
        earlier_rows=int(every.item()) - n_new,
        new_decisions=int(decisions.item()),
        has_images=bool(has_images.item()),
    )


def contexts_of(store: FrameStore, manifest: Manifest, partition: Partition) -> pl.LazyFrame:
    """Return the hashes of a side's contexts, each once, as the column ``context_sha256``."""
    return scan(store, manifest, partition).select("context_sha256").unique()
