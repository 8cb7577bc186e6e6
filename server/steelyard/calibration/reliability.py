"""Reliability: how often decisions of a given top probability are right.

The reliability table, and the interval of the calibration error it sums up to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.calibration.bins import (
    N_BINS,
    FloatArray,
    bin_columns,
    bin_index,
    ece_from_totals,
)
from steelyard.calibration.intervals import (
    N_RESAMPLES,
    Interval,
    proportion_interval,
    weighed_totals,
)
from steelyard.calibration.metrics import decision_hits

#: Clusters under which chance is also drawn from the probabilities: so few move too little.
_FEW_CLUSTERS = 200
#: Numbers drawn at a time (8 bytes each).
_DRAWS_AT_A_TIME = 2_000_000


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The ``n`` decisions whose top probability is above ``low``, up to ``high``.

    The first bin holds 0 too. ``mean_top_probability`` is the mean forecast, ``accuracy`` the share
    that came true, with Clopper and Pearson's ``interval``; each is None when the bin is empty.
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
    """Return accuracy against promise in ``n_bins`` bins of equal width, from low to high.

    Empty bins are included. Arrays and errors are those of ``steelyard.calibration.metrics``.

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
) -> Interval | None:
    """Return the interval of the expected calibration error; see ``ece_ends``.

    ``clusters`` are n_decisions keys: decisions of equal ones, such as those on one context, stand
    or fall together. Arrays and errors are those of ``steelyard.calibration.metrics``.
    """
    hits = decision_hits(probabilities, targets)
    top = np.asarray(probabilities, dtype=np.float64).max(axis=1)
    codes = np.arange(len(top))
    if clusters is not None:
        _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return ece_ends(top, hits, codes, n_bins, level=level, n_resamples=n_resamples, seed=seed)


def ece_ends(
    p_top: FloatArray,
    hits: FloatArray,
    codes: NDArray[np.intp],
    n_bins: int = N_BINS,
    *,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """Return the interval of a calibration error, or None over fewer than two clusters.

    The error of a sample is above the true one, as gaps that chance makes do not cancel out. The
    lower end is the error less that of chance alone: how far the gaps move when clusters are
    weighed at random, or, if that is more, the error of decisions that come out as their
    probabilities say. It is 0 where chance alone explains the error. The upper end allows for one
    cluster more, all wrong: see ``steelyard.calibration.intervals.ratio_intervals``. All arrays are
    of shape (n_decisions,); decisions of equal ``codes`` stand or fall together.

    References
    ----------
    Broecker and Smith, "Increasing the Reliability of Reliability Diagrams", Weather and
    Forecasting, 2007.
    """
    n = len(p_top)
    columns = bin_columns(p_top, hits, n_bins)
    _, codes = np.unique(codes, return_inverse=True)
    each = [np.bincount(codes, column) for column in columns.T]
    sums = np.stack(each, axis=1).astype(np.float64)
    if len(sums) < 2:
        return None
    totals = sums.sum(axis=0).reshape(n_bins, 3)
    value = float(ece_from_totals(totals))
    drawn, unseen = weighed_totals(sums, n_resamples=n_resamples, seed=seed)
    drawn = drawn.reshape(-1, n_bins, 3)
    weight, extra = drawn[..., 0].sum(axis=-1), unseen * (n / len(sums))
    wrong = (ece_from_totals(drawn) * weight + extra) / (weight + extra)
    gaps = (totals[:, 1] - totals[:, 2]) / n
    moved = np.abs((drawn[..., 1] - drawn[..., 2]) / weight[:, None] - gaps).sum(axis=-1)
    share = (1 + level) / 2
    noise = float(np.quantile(moved, share))
    if len(sums) < _FEW_CLUSTERS:
        by_chance = _errors_of_calibrated(p_top, codes, n_bins, n_resamples, seed)
        noise = max(noise, float(np.quantile(by_chance, share)))
    high = max(value, float(np.quantile(wrong, share)))
    return Interval(max(0.0, value - noise), high, level, "unseen-cluster")


def _errors_of_calibrated(
    p_top: FloatArray, codes: NDArray[np.intp], n_bins: int, n_resamples: int, seed: int
) -> FloatArray:
    """Return calibration errors of decisions that come out as often as they promise.

    Those of one cluster come out alike as far as their probabilities let them.
    """
    rng = np.random.default_rng(seed)
    is_in = (bin_index(p_top, n_bins)[:, None] == np.arange(n_bins)).astype(np.float64)
    errors = np.empty(n_resamples)
    rows_at_a_time = max(1, _DRAWS_AT_A_TIME // len(p_top))
    for start in range(0, n_resamples, rows_at_a_time):
        n_rows = min(rows_at_a_time, n_resamples - start)
        luck = rng.random((n_rows, int(codes.max()) + 1))
        gaps = (p_top - (luck[:, codes] < p_top)) @ is_in
        errors[start : start + n_rows] = np.abs(gaps).sum(axis=1) / len(p_top)
    return errors


def _bin_from_totals(index: int, n_bins: int, totals: FloatArray, level: float) -> ReliabilityBin:
    low, high = index / n_bins, (index + 1) / n_bins
    n, promised, hits = (float(value) for value in totals)
    if n == 0:
        return ReliabilityBin(low, high, 0, None, None, None)
    return ReliabilityBin(
        low, high, int(n), promised / n, hits / n, proportion_interval(hits, n, level=level)
    )
