"""Labels that held-out predictions contradict: confident learning.

An outcome's threshold is the mean probability of that outcome on the rows that have its label. A
label is doubted where another outcome is at least as likely as is usual for rows of that label, and
the label itself is much less likely (Northcutt, Jiang and Chuang, "Confident Learning", Journal of
Artificial Intelligence Research, 2021).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: A label is doubted from where it has at most this share of the probability of the other.
MOST_RATIO = 0.25


def rivals_of(probabilities: NDArray[np.float64], labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the outcome that each row reads like against its label; -1 where none does.

    ``probabilities`` are those of models that did not learn from the row, a row and outcome each;
    ``labels`` are outcomes by their place.
    """
    rows = np.arange(len(labels))
    thresholds = np.array(
        [
            probabilities[labels == place, place].mean() if (labels == place).any() else 1.0
            for place in range(probabilities.shape[1])
        ]
    )
    others = probabilities.copy()
    others[rows, labels] = -1.0
    others[probabilities < thresholds] = -1.0
    rivals = others.argmax(axis=1)
    rival, own = others[rows, rivals], probabilities[rows, labels]
    return np.where((rival > 0) & (own <= MOST_RATIO * rival), rivals, -1)
