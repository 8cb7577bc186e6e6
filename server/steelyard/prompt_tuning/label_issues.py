"""Rows whose label contradicts the wording: confident learning on held-out predictions.

An outcome's threshold is the mean probability of that outcome on the rows that have its label. A
row is doubted where another outcome is at least as likely as is usual for rows of that label, and
its own label is less likely than the other (Northcutt, Jiang and Chuang, "Confident Learning",
Journal of Artificial Intelligence Research, 2021). The predictions are of a wording that was not
chosen on the row or, where it was, of a model that never learned from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.prompt_tuning.wire import LabelIssue

FloatArray = NDArray[np.float64]

#: The most doubted rows of a job, the most doubtful first.
MAX_ISSUES = 200
#: A row is doubted from where its label has at most this share of the probability of the other.
MOST_RATIO = 0.25


def find_label_issues(
    probabilities: FloatArray, targets: FloatArray, indexes: Sequence[int], names: Sequence[str]
) -> list[LabelIssue]:
    """Return the rows whose label contradicts what the model reads, the most doubtful first."""
    labels = targets.argmax(axis=1)
    rows = np.arange(len(labels))
    thresholds = np.array(
        [
            probabilities[labels == place, place].mean() if (labels == place).any() else 1.0
            for place in range(len(names))
        ]
    )
    others = probabilities.copy()
    others[rows, labels] = -1.0
    others[probabilities < thresholds] = -1.0
    rivals = others.argmax(axis=1)
    own, rival = probabilities[rows, labels], others[rows, rivals]
    doubted = np.flatnonzero((rival > 0) & (own <= MOST_RATIO * rival))
    order = doubted[np.argsort(own[doubted] - rival[doubted], kind="stable")]
    return [
        LabelIssue(
            row=f"r{indexes[row]}",
            reason=(
                f"It is labelled {names[labels[row]]} (probability {own[row]:.2f}) and reads like "
                f"{names[rivals[row]]} ({rival[row]:.2f})."
            ),
        )
        for row in order[:MAX_ISSUES]
    ]
