"""The unlabelled rows to label first: those that a model doubts, and that differ from each other.

Doubt is the entropy of the answer and, of several models, how far they disagree (Lewis and Gale,
1994; Seung et al., 1992). Differing is the greedy k-center of the contexts' vectors (Sener and
Savarese, 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

#: What a row that no model doubts still counts beside one that is all doubt.
_FLOOR = 0.1
#: Labelled rows that are compared at a time.
_BLOCK = 1_024


def doubt_of(probabilities: Sequence[Sequence[float]]) -> float:
    """Return how unsure models are of one decision: 0 where they agree and are sure, 1 at most.

    The entropy of the mean of their probabilities is the mean of their entropies and their
    Jensen-Shannon divergence, so that it grows with either.
    """
    mean = np.mean(np.asarray(probabilities, dtype=np.float64), axis=0)
    positive = mean[mean > 0]
    return float(-(positive * np.log(positive)).sum() / np.log(len(mean))) if len(mean) > 1 else 0.0


def mean_doubt(decisions: Iterable[Sequence[Sequence[float]]]) -> float:
    """Return the mean doubt of a row's decisions; 1 of a row that no teacher was asked about."""
    doubts = [doubt_of(decision) for decision in decisions]
    return sum(doubts) / len(doubts) if doubts else 1.0


def choose(
    vectors: NDArray[np.float32],
    doubts: Sequence[float],
    n: int,
    *,
    labelled: NDArray[np.float32] | None = None,
) -> list[int]:
    """Return the places of rows in the order in which their labels would teach most.

    Each next one is the row whose doubt times its distance from the nearest one chosen, or labelled
    already, is largest; equal contexts are chosen once.

    ``vectors`` are unit vectors of the contexts, ``doubts`` from 0 to 1; ``labelled`` are unit
    vectors of contexts that have labels already, from which the chosen differ too. Fewer than ``n``
    come back where fewer contexts differ.
    """
    weights = _FLOOR + (1 - _FLOOR) * np.asarray(doubts, dtype=np.float64)
    chosen: list[int] = []
    # Half the squared distance of unit vectors; the farthest that two can be is 2.
    distances = np.full(len(vectors), 2.0)
    for start in range(0, 0 if labelled is None else len(labelled), _BLOCK):
        likeness = vectors @ labelled[start : start + _BLOCK].T  # type: ignore[index]
        distances = np.minimum(distances, 1 - likeness.max(axis=1))
    while len(chosen) < min(n, len(vectors)):
        place = int((weights * distances).argmax())
        if distances[place] <= 1e-6:
            break
        chosen.append(place)
        distances = np.minimum(distances, 1 - vectors @ vectors[place])
    return chosen
