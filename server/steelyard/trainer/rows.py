"""The unit of a fine-tune: one labelled decision on one context, as the scorer reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedDecision


@dataclass(frozen=True, slots=True)
class TuningRow:
    """One labelled decision of a dataset's row.

    It is seen where the source of the features, the parent's head or LoRA weights, was trained on it.
    Such rows train heads, but candidates are compared and calibrated on the others where there are
    enough of them.
    """

    context: str
    context_sha256: str
    decision: RenderedDecision
    labels: NDArray[np.float64]  # in outcome order: targets, which sum to 1, or rewards
    is_seen: bool = False
