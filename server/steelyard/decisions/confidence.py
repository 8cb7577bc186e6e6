"""Confidence from probabilities, by the public formulas of the SystemOne dialect.

TypeSafe documents them with its adapter for other models: how far the largest probability is above
chance for a choice, and how little the levels scatter around the likeliest one for a score.
Steelyard's own answers do not have this number; they have the probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def choice_confidence(probabilities: Sequence[float]) -> float:
    """Return ``(p_max - 1/k) / (1 - 1/k)`` over ``k`` labels; 1 for a single label.

    >>> round(choice_confidence([0.7, 0.2, 0.1]), 4)
    0.55
    """
    shares = _normalised(probabilities)
    if len(shares) == 1:
        return 1.0
    chance = 1 / len(shares)
    return max(0.0, (max(shares) - chance) / (1 - chance))


def score_confidence(probabilities: Sequence[float]) -> float:
    """Return ``max(0, 1 - E|level - mode| / D)``; 1 for a single level.

    >>> round(score_confidence([0.7, 0.2, 0.1]), 4)
    0.4
    """
    shares = _normalised(probabilities)
    if len(shares) == 1:
        return 1.0
    mode = shares.index(max(shares))
    middle = (len(shares) - 1) / 2
    scatter = math.fsum(share * abs(level - mode) for level, share in enumerate(shares))
    typical = math.fsum(abs(level - middle) for level in range(len(shares))) / len(shares)
    return max(0.0, 1 - scatter / typical)


def top_probability_at(confidence: float, n_labels: int) -> float:
    """Return the largest probability that a choice has at a confidence: ``(1 + c (k - 1)) / k``.

    >>> round(top_probability_at(0.55, 3), 4)
    0.7
    """
    return (1 + confidence * (n_labels - 1)) / n_labels


def _normalised(probabilities: Sequence[float]) -> list[float]:
    total = math.fsum(probabilities)
    return [probability / total for probability in probabilities]
