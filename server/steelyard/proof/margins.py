"""Margins that a change must clear, beside its interval."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from steelyard.calibration.bins import FloatArray
from steelyard.proof.differences import LEVEL

#: How many times over an interval is widened for few contexts.
_FEW_TIMES = 2.0
#: The chance that any of all comparisons of a growth passes a family that is worse by its margin.
FALSE_PASSES = 0.05
_NORMAL = NormalDist()


def few_contexts(harm: float, high: float, n: int) -> float:
    """Return how much further the unlucky end of an interval lies for few contexts.

    Twice the correction by Student's t distribution and the unbiased variance.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - only a gate needs it

    if n < 2:
        return 0.0
    student = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * math.sqrt(n / (n - 1))
    excess = student / _NORMAL.inv_cdf((1 + LEVEL) / 2) - 1
    return max(0.0, high - harm) * _FEW_TIMES * excess


def noise_band(gain: float, resampled: FloatArray, n_contexts: int, confidence: float) -> float:
    """Return the gain that chance alone reaches with a confidence, one-sided."""
    band = float(gain - np.quantile(resampled, 1 - confidence))
    # A resample spreads less than the sample that it is drawn from, most where that is small.
    return max(band, 0.0) * float(np.sqrt(n_contexts / max(n_contexts - 1, 1)))


def level_of(n_comparisons: int) -> float:
    """Return how many standard errors the n-th comparison has to keep from the margin.

    All comparisons together pass a family that is worse by the margin in at most a twentieth of growths.

    >>> round(level_of(1), 2), round(level_of(2), 2)
    (1.96, 2.39)
    """
    return _NORMAL.inv_cdf(1 - FALSE_PASSES / (n_comparisons * (n_comparisons + 1)))


def is_as_right(change: float, low: float, *, margin: float, n_comparisons: int) -> bool:
    """Whether a family is as right as the model before it, within a margin.

    ``low`` is the lower end of the 95 % interval of the ``change`` of the share that is right.
    """
    return lower_end(change, low, n_comparisons) >= -margin


def lower_end(change: float, low: float, n_comparisons: int) -> float:
    """Return the lower end of an interval of 95 % at the level that the n-th comparison has."""
    return change - (change - low) * level_of(n_comparisons) / level_of(1)
