"""What a fine-tune learns from: one labelled decision on one context, as the scorer reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedDecision


@dataclass(frozen=True, slots=True)
class TuningRow:
    """One labelled decision of a dataset's row.

    Parameters
    ----------
    labels : float64 array of shape (n_outcomes,)
        In outcome order. Targets, not negative and summing to 1; or rewards, finite.
    is_seen : bool, default False
        Whether what the features come from was trained on this row: the parent's head, or LoRA
        weights. Such rows train heads, but candidates are compared and calibrated on the others
        where there are enough of them.
    """

    context: str
    context_sha256: str
    decision: RenderedDecision
    labels: NDArray[np.float64]
    is_seen: bool = False
