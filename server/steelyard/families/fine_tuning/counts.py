"""Evaluation rows and decisions of a version, by whether a family has been judged on them.

A decision is new when its row came since the family last trained, unless the family was judged on
the same decision of the same context with the same labels: a correction makes new what it changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl

from steelyard.datasets.frames.scanning import scan
from steelyard.datasets.rows import read_task
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Partition
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.methods import Method
from steelyard.wire.violations import Violations

#: Lists of decisions that are kept read.
_CACHED_TASKS = 256


@dataclass(frozen=True, slots=True)
class EvaluationCounts:
    """The numbers of rows for evaluation."""

    new_rows: int
    earlier_rows: int
    new_decisions: int
    decisions: int
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
    for version in learned:
        frame = frame.join(contexts_of(store, version, "training"), on="context_sha256", how="anti")
    judged = frame.select("index", "labels")
    decided = (
        judged.explode("labels")
        .unnest("labels")
        .group_by("index", "decision")
        .agg(pl.col("value").n_unique())
    )
    if method == "reward":
        decided = decided.filter(pl.col("value") > 1)  # equal rewards decide nothing
    images = scan(store, manifest).select(pl.col("images").is_not_null().any())
    read = [manifest, *learned]
    with store.reading(*(name for version in read for name in version.part_names())):
        rows, decisions, has_images = pl.collect_all(
            [judged.select("index"), decided.select("index", "decision"), images]
        )
    first = 0 if trained is None else trained.next_index
    known = judged_decisions(store, manifest, trained)
    earlier = {index for index, (_, is_whole) in known.items() if is_whole}
    n_new = sum(index >= first and index not in earlier for index in rows["index"])
    n_new_decisions = sum(
        index >= first and (index not in known or name not in known[index][0])
        for index, name in decisions.iter_rows()
    )
    return EvaluationCounts(
        new_rows=n_new,
        earlier_rows=len(rows) - n_new,
        new_decisions=n_new_decisions,
        decisions=len(decisions),
        has_images=bool(has_images.item()),
    )


def judged_decisions(
    store: FrameStore, manifest: Manifest, trained: Manifest | None
) -> dict[int, tuple[frozenset[str], bool]]:
    """Return, by the index of a later evaluation row, which of its decisions are no news.

    They are those that the trained version asked of the context too, with the same wording and the
    same labels; the flag says whether that is all of the row. It blocks.
    """
    if trained is None:
        return {}
    columns = ("index", "context_sha256", "decisions", "labels")
    earlier = scan(store, trained, "evaluation").select(columns[1:])
    later = (
        scan(store, manifest, "evaluation")
        .select(columns)
        .filter(pl.col("index") >= trained.next_index)
        .join(earlier.select("context_sha256").unique(), on="context_sha256", how="semi")
    )
    with store.reading(*trained.part_names(), *manifest.part_names()):
        rows = later.collect()
        if rows.is_empty():
            return {}
        earlier = earlier.join(
            rows.lazy().select("context_sha256").unique(), on="context_sha256", how="semi"
        )
        before = earlier.collect()
    read = lru_cache(_CACHED_TASKS)(_fingerprints)
    known: defaultdict[bytes, set[tuple[str, str, Any]]] = defaultdict(set)
    for context, decisions, labels in before.iter_rows():
        known[context] |= _labelled(read(decisions), labels)
    known_decisions = {}
    for index, context, decisions, labels in rows.iter_rows():
        every = _labelled(read(decisions), labels)
        same = every & known[context]
        if same:
            known_decisions[index] = (frozenset(name for name, *_ in same), same == every)
    return known_decisions


def _labelled(
    fingerprints: dict[str, str], labels: Sequence[dict[str, Any]]
) -> set[tuple[str, str, Any]]:
    """Return the labelled decisions of a row: question and label of each."""
    values: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for label in labels:
        values[label["decision"]].append((label["outcome"], label["value"]))
    return {(name, fingerprints[name], tuple(sorted(values[name]))) for name in values}


def _fingerprints(decisions: str) -> dict[str, str]:
    task, _ = read_task({"decisions": msgspec.json.decode(decisions)}, Violations())
    if task is None:
        raise RuntimeError("A stored row asks what no row can ask.")
    return {decision.id: decision.fingerprint.hex() for decision in task.decisions}


def contexts_of(store: FrameStore, manifest: Manifest, partition: Partition) -> pl.LazyFrame:
    """Return the hashes of a side's contexts, each once, as the column ``context_sha256``."""
    return scan(store, manifest, partition).select("context_sha256").unique()
