"""Which side a context is on: a function of the dataset's id and the contexts alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from steelyard.datasets.wire import MAX_FRACTION

#: From this many new contexts on, at least one is put aside.
MIN_CONTEXTS_FOR_ONE = 5


def count_evaluation(n_contexts: int, fraction: float) -> int:
    """Return how many of the new contexts are put aside for evaluation."""
    if fraction >= MAX_FRACTION:
        return n_contexts
    least = 1 if n_contexts >= MIN_CONTEXTS_FOR_ONE else 0
    return max(0, min(max(round(fraction * n_contexts), least), n_contexts - 1))


def rank_contexts(dataset_id: str, contexts: Iterable[bytes]) -> list[bytes]:
    """Return the ranks of contexts; those with the lowest are put aside for evaluation."""
    start = hashlib.sha256(dataset_id.encode() + b"\n")
    ranks = []
    for context in contexts:
        rank = start.copy()
        rank.update(context)
        ranks.append(rank.digest())
    return ranks
