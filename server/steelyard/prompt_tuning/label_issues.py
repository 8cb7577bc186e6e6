"""Rows whose label contradicts the wording.

The predictions are of a wording that was not chosen on the row or, where it was, of a model that
never learned from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.datasets.confident import rivals_of
from steelyard.prompt_tuning.wire import LabelIssue

FloatArray = NDArray[np.float64]

#: The most doubted rows of a job, the most doubtful first.
MAX_ISSUES = 200


def find_label_issues(
    probabilities: FloatArray, targets: FloatArray, indexes: Sequence[int], names: Sequence[str]
) -> list[LabelIssue]:
    """Return the rows whose label contradicts the model's reading, the most doubtful first."""
    labels = targets.argmax(axis=1)
    rows = np.arange(len(labels))
    rivals = rivals_of(probabilities, labels)
    own, rival = probabilities[rows, labels], probabilities[rows, rivals]
    doubted = np.flatnonzero(rivals >= 0)
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
