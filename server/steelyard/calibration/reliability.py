"""Reliability: how often decisions of a given top probability are right.

The reliability table, and the interval of the calibration error it sums up to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.calibration.bins import N_BINS, FloatArray, bin_columns, ece_from_totals
from steelyard.calibration.intervals import (
    N_RESAMPLES,
    Interval,
    basic_interval,
    resample_totals,
    wilson_interval,
)
from steelyard.calibration.metrics import decision_hits


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The decisions whose top probability falls in one bin.

    Parameters
    ----------
    low, high : float
        The bin holds top probabilities above ``low`` up to ``high`` (the first holds 0 too).
    n : int
        Decisions in it.
    mean_top_probability : float or None
        What the forecasts promised; None when the bin is empty.
    accuracy : float or None
        What came true; None when the bin is empty.
    interval : Interval or None
        Wilson's interval of the accuracy; None when the bin is empty.
    """

    low: float
    high: float
    n: int
    mean_top_probability: float | None
    accuracy: float | None
    interval: Interval | None


def reliability_table(
    probabilities: ArrayLike,
    targets: ArrayLike,
    *,
    n_bins: int = N_BINS,
    level: float = 0.95,
) -> tuple[ReliabilityBin, ...]:
    """Return accuracy against promise in bins of equal width.

    Parameters
    ----------
    probabilities, targets : float arrays of shape (n_decisions, most_outcomes)
        Padded with zeros; see ``steelyard.calibration.metrics.pad_rows``.
    n_bins : int, default 10
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    tuple of ReliabilityBin
        ``n_bins`` of them, from low to high, empty ones included.

    Raises
    ------
    ValueError
        When the shapes differ, or a value is not finite or not within 0 and 1.

    Examples
    --------
    >>> table = reliability_table([[0.75, 0.25], [0.72, 0.28]], [[1, 0], [0, 1]])
    >>> table[7].n, round(table[7].mean_top_probability, 3), table[7].accuracy
    (2, 0.735, 0.5)
    """
    hits = decision_hits(probabilities, targets)
    top = np.asarray(probabilities, dtype=np.float64).max(axis=1)
    totals = bin_columns(top, hits, n_bins).sum(axis=0).reshape(n_bins, 3)
    return tuple(_bin_from_totals(index, n_bins, row, level) for index, row in enumerate(totals))


def ece_interval(
    probabilities: ArrayLike,
    targets: ArrayLike,
    *,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    n_bins: int = N_BINS,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the bootstrap interval of the expected calibration error.

    Parameters
    ----------
    probabilities, targets : float arrays of shape (n_decisions, most_outcomes)
        Padded with zeros.
    clusters : sequence of n_decisions keys, optional
        Decisions of equal keys, such as those on one context, are drawn together.
    n_bins : int, default 10
    level : float, default 0.95
    n_resamples : int, default 2,000
    seed : int, default 0

    Returns
    -------
    Interval
        The basic interval: resampling biases calibration error upwards, and percentile intervals
        of calibrated forecasters would miss the true value. Where that is 0, the interval holds it
        about three times in four.

    Raises
    ------
    ValueError
        When the shapes differ, or a value is not finite or not within 0 and 1.
    """
    hits = decision_hits(probabilities, targets)
    top = np.asarray(probabilities, dtype=np.float64).max(axis=1)
    columns = bin_columns(top, hits, n_bins)
    point = float(ece_from_totals(columns.sum(axis=0).reshape(n_bins, 3)))
    totals = resample_totals(columns, clusters, n_resamples=n_resamples, seed=seed)
    return basic_interval(point, ece_from_totals(totals.reshape(-1, n_bins, 3)), level=level)


def _bin_from_totals(index: int, n_bins: int, totals: FloatArray, level: float) -> ReliabilityBin:
    low, high = index / n_bins, (index + 1) / n_bins
    n, promised, hits = (float(value) for value in totals)
    if n == 0:
        return ReliabilityBin(low, high, 0, None, None, None)
    return ReliabilityBin(
        low, high, int(n), promised / n, hits / n, wilson_interval(hits, n, level=level)
    )
