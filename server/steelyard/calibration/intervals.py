"""Intervals around measured figures: Wilson's for proportions, the bootstrap for everything else.

The bootstrap is seeded and over clusters: the decisions of one context stand or fall together, so a
resample draws contexts. A resample is a vector of counts, one a cluster, and every statistic is a function of sums over
clusters: the sums of all resamples are one matrix product, and statistics resampled with one seed
are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.calibration.bins import FloatArray

#: Resamples of a bootstrap unless told otherwise.
N_RESAMPLES = 2_000

#: Counts held at a time while resampling (8 bytes each).
_COUNTS_AT_A_TIME = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a nominal coverage, such as 0.95.

    Parameters
    ----------
    low, high : float
        The ends, ``low <= high``.
    level : float
    method : str
        How it was made: ``wilson``, ``bootstrap-percentile`` or ``bootstrap-basic``.
    """

    low: float
    high: float
    level: float
    method: str


def wilson_interval(n_successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a proportion.

    Parameters
    ----------
    n_successes : float
        Successes, from 0 to ``n``.
    n : float
        Trials, more than 0.
    level : float, default 0.95
        Coverage, between 0 and 1.

    Returns
    -------
    Interval
        Within 0 and 1, and of some width even when every trial agrees.

    Raises
    ------
    ValueError
        When a number is out of range.

    References
    ----------
    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association, 1927.

    Examples
    --------
    >>> interval = wilson_interval(9, 10)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.596, 0.982)
    """
    if not (n > 0 and 0 <= n_successes <= n):
        msg = f"0 to n successes of more than 0 trials: got {n_successes} of {n}"
        raise ValueError(msg)
    _check_level(level)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = n_successes / n
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / shrink
    # Held to the share on both sides, against rounding where every trial agrees.
    low = min(max(0.0, centre - half), share)
    return Interval(low, max(min(1.0, centre + half), share), level, "wilson")


def resample_totals(
    values: ArrayLike,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> FloatArray:
    """Sum columns over bootstrap resamples of whole clusters.

    Parameters
    ----------
    values : float array of shape (n_rows, n_columns)
        What to sum; for a mean, the values and the weights are two columns.
    clusters : sequence of n_rows keys, optional
        Rows of equal keys are drawn together; each row is its own cluster by default. The answer
        does not depend on the order of rows when keys are given.
    n_resamples : int, default 2,000
    seed : int, default 0
        Equal seeds over equally many clusters draw the same resamples, so statistics of several
        calls are paired.

    Returns
    -------
    float64 array of shape (n_resamples, n_columns)

    Raises
    ------
    ValueError
        When ``values`` is empty or not a matrix, not finite, or ``clusters`` is of another length.

    Notes
    -----
    Draws n_resamples * n_clusters numbers, 16 MB of counts at a time, then multiplies matrices.

    References
    ----------
    Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 8 and 13.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0 or not np.isfinite(matrix).all():
        msg = f"a finite matrix of one row or more: got shape {matrix.shape}"
        raise ValueError(msg)
    if clusters is not None:
        matrix = _sum_by_cluster(matrix, clusters)
    n_clusters = len(matrix)
    rng = np.random.default_rng(seed)
    rows_at_a_time = max(1, _COUNTS_AT_A_TIME // n_clusters)
    totals = np.empty((n_resamples, matrix.shape[1]))
    for start in range(0, n_resamples, rows_at_a_time):
        n_rows = min(rows_at_a_time, n_resamples - start)
        # Uniform draws counted by row are multinomial counts, and much quicker to come by.
        draws = rng.integers(n_clusters, size=(n_rows, n_clusters))
        draws += np.arange(n_rows)[:, None] * n_clusters
        counts = np.bincount(draws.ravel(), minlength=n_rows * n_clusters)
        totals[start : start + n_rows] = counts.reshape(n_rows, n_clusters) @ matrix
    return totals


def percentile_interval(statistics: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the percentile interval of resampled statistics.

    Parameters
    ----------
    statistics : float array of shape (n_resamples,)
        The statistic of each resample.
    level : float, default 0.95

    Raises
    ------
    ValueError
        When a statistic is not finite or ``level`` is out of range.

    Examples
    --------
    >>> percentile_interval([1.0, 2.0, 3.0, 4.0, 5.0], level=0.5)
    Interval(low=2.0, high=4.0, level=0.5, method='bootstrap-percentile')
    """
    low, high = _quantiles(statistics, level)
    return Interval(low, high, level, "bootstrap-percentile")


def basic_interval(point: float, statistics: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the basic (reverse percentile) interval of a statistic that cannot be negative.

    For statistics that resampling biases upwards, calibration error above all: the percentile
    interval then lies wholly above a small true value, and this one corrects for it.

    Parameters
    ----------
    point : float
        The statistic of the sample itself, not negative.
    statistics : float array of shape (n_resamples,)
        The statistic of each resample.
    level : float, default 0.95

    Returns
    -------
    Interval
        From 0 up, and always holding ``point``.

    Raises
    ------
    ValueError
        When a statistic is not finite or ``level`` is out of range.

    References
    ----------
    Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 5.2.
    """
    low, high = _quantiles(statistics, level)
    return Interval(
        min(max(0.0, 2 * point - high), point),
        max(2 * point - low, point),
        level,
        "bootstrap-basic",
    )


def mean_interval(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the bootstrap percentile interval of a (weighted) mean.

    For a paired comparison, give the differences of the two models' values.

    Parameters
    ----------
    values : float array of shape (n_rows,)
    weights : float array of shape (n_rows,), optional
        Above 0.
    clusters : sequence of n_rows keys, optional
        Rows of equal keys are drawn together.
    level : float, default 0.95
    n_resamples : int, default 2,000
    seed : int, default 0

    Raises
    ------
    ValueError
        When an array is empty, not finite or of another length, or a weight is not above 0.

    Examples
    --------
    >>> mean_interval([2.0, 2.0, 2.0])
    Interval(low=2.0, high=2.0, level=0.95, method='bootstrap-percentile')
    """
    column = np.asarray(values, dtype=np.float64)
    weight = np.ones(column.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if column.ndim != 1 or weight.shape != column.shape or not (weight > 0).all():
        msg = "one value and one weight above 0 a row"
        raise ValueError(msg)
    totals = resample_totals(
        np.stack([column * weight, weight], axis=1), clusters, n_resamples=n_resamples, seed=seed
    )
    return percentile_interval(totals[:, 0] / totals[:, 1], level=level)


def _sum_by_cluster(
    matrix: FloatArray, clusters: Sequence[object] | NDArray[np.generic]
) -> FloatArray:
    if len(clusters) != len(matrix):
        msg = f"{len(matrix)} rows and {len(clusters)} cluster keys"
        raise ValueError(msg)
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    return np.stack([np.bincount(index, column) for column in matrix.T], axis=1)


def _quantiles(statistics: ArrayLike, level: float) -> tuple[float, float]:
    _check_level(level)
    values = np.asarray(statistics, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        msg = "one finite statistic or more"
        raise ValueError(msg)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        msg = f"a level between 0 and 1: got {level}"
        raise ValueError(msg)
