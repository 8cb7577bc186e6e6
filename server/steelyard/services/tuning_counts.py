"""Evaluation rows and decisions of a version, by whether a family has been judged on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from steelyard.datasets.versions import Manifest
from steelyard.storage.frames.scanning import scan
from steelyard.storage.frames.store import FrameStore, told_as_unavailable
from steelyard.wire.datasets import Method, Partition


@dataclass(frozen=True, slots=True)
class EvaluationCounts:
    """What there is to judge by.

    Parameters
    ----------
    new_rows, earlier_rows : int
        Evaluation rows by whether their context came since; those on contexts that the model to
        start from was trained on are neither.
    new_decisions : int
        Labelled decisions of the new rows; with rewards, those that not all outcomes earn alike.
    has_images : bool
        Whether a row of either side has any.
    """

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
    """Count the evaluation rows of a version; it blocks.

    Parameters
    ----------
    store : FrameStore
        Holds the rows.
    manifest : Manifest
        The version.
    trained : Manifest or None
        The earlier version that the family trained on last.
    method : {"sft", "reward"}
    learned : sequence of Manifest, optional
        Versions of other datasets that the model to start from was trained on: within one dataset
        a context never changes sides.

    Raises
    ------
    steelyard.errors.StorageUnavailableError
        When a file cannot be read.
    """
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
    with told_as_unavailable():
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
    """Give the hashes of a side's contexts, each once, as the column ``context_sha256``."""
    return scan(store, manifest, partition).select("context_sha256").unique()
