"""Evaluation rows and decisions of a version, by whether a family has been judged on them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from steelyard.datasets.versions import Manifest
from steelyard.storage.frames.scanning import scan
from steelyard.storage.frames.store import FrameStore, told_as_unavailable
from steelyard.wire.datasets import Method


@dataclass(frozen=True, slots=True)
class EvaluationCounts:
    """What there is to judge by.

    Parameters
    ----------
    new_rows, earlier_rows : int
        Evaluation rows by whether their context came since.
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
    store: FrameStore, manifest: Manifest, trained: Manifest | None, method: Method
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

    Raises
    ------
    steelyard.errors.StorageUnavailableError
        When a file cannot be read.
    """
    frame = scan(store, manifest, "evaluation")
    # A context is judged as a whole: a new row of one that was judged on before is no new one.
    if trained is not None:
        earlier = scan(store, trained, "evaluation").select("context_sha256").unique()
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
        rows, decisions, has_images = pl.collect_all(
            [new.select(pl.len()), decided.select(pl.len()), images]
        )
    n_new = int(rows.item())
    return EvaluationCounts(
        new_rows=n_new,
        earlier_rows=manifest.split.evaluation - n_new,
        new_decisions=int(decisions.item()),
        has_images=bool(has_images.item()),
    )
