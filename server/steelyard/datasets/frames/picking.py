"""Which contexts are put aside for evaluation, however many there are.

The lowest ranks of all are picked, so none is known before the last context was offered. Ranks wait
in a file; in memory is one piece of it at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.datasets.wire import MAX_FRACTION

#: From this many new contexts on, at least one is put aside.
MIN_CONTEXTS_FOR_EVALUATION = 5


def count_evaluation(n_contexts: int, fraction: float) -> int:
    """Return how many of the new contexts are put aside for evaluation."""
    if fraction >= MAX_FRACTION:
        return n_contexts
    least = 1 if n_contexts >= MIN_CONTEXTS_FOR_EVALUATION else 0
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


_RANK_BYTES = 32
#: Ranks are counted by their first two bytes, and those around the last one picked sorted.
_PREFIXES = 1 << 16
_PIECE_RANKS = 1 << 16


class EvaluationPick:
    """Picks the contexts that are put aside for evaluation."""

    def __init__(self, dataset_id: str, path: Path) -> None:
        self._dataset_id = dataset_id
        self._path = path
        self._last: bytes | None = None
        self.n_offered = 0
        self.n_picked = 0

    def offer(self, contexts: Iterable[bytes]) -> None:
        """Take contexts by their SHA-256, each once over all calls, in any order."""
        ranks = rank_contexts(self._dataset_id, contexts)
        with self._path.open("ab") as file:
            file.write(b"".join(ranks))
        self.n_offered += len(ranks)

    def settle(self, fraction: float) -> None:
        """Pick a share of the offered rows, as ``count_evaluation`` counts it."""
        self.n_picked = count_evaluation(self.n_offered, fraction)
        if self.n_picked == 0:
            return
        counts = np.zeros(_PREFIXES, dtype=np.int64)
        for ranks in self._pieces():
            counts += np.bincount(_prefixes(ranks), minlength=_PREFIXES)
        n_up_to = np.cumsum(counts)
        prefix = int(np.searchsorted(n_up_to, self.n_picked))
        beside = b"".join(ranks[_prefixes(ranks) == prefix].tobytes() for ranks in self._pieces())
        near = sorted(
            beside[start : start + _RANK_BYTES] for start in range(0, len(beside), _RANK_BYTES)
        )
        self._last = near[self.n_picked - int(n_up_to[prefix] - counts[prefix]) - 1]

    def is_evaluation(self, contexts: Iterable[bytes]) -> NDArray[np.bool_]:
        """Return whether each context that was offered was picked, in the order given."""
        last = self._last
        ranks = rank_contexts(self._dataset_id, contexts)
        return np.array([last is not None and rank <= last for rank in ranks], dtype=np.bool_)

    def _pieces(self) -> Iterator[NDArray[np.uint8]]:
        with self._path.open("rb") as file:
            while piece := file.read(_PIECE_RANKS * _RANK_BYTES):
                yield np.frombuffer(piece, dtype=np.uint8).reshape(-1, _RANK_BYTES)


def _prefixes(ranks: NDArray[np.uint8]) -> NDArray[np.int64]:
    high, low = ranks[:, 0].astype(np.int64), ranks[:, 1].astype(np.int64)
    prefixes: NDArray[np.int64] = high * 256 + low
    return prefixes
