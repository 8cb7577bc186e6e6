"""Intervals around measured figures that hold from two contexts on.

A proportion of single trials has Clopper and Pearson's exact interval, and a ratio of sums over
clusters the same idea for any value with bounds (``ratio_intervals``). The bootstrap is for other
statistics. Both are seeded and over clusters: the decisions of one context stand or fall together, so a
resample draws contexts. A resample is a vector of counts, one a cluster, and every statistic is a
function of sums over clusters: the sums of all resamples are one matrix product, and statistics
resampled with one seed are paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.calibration.bins import FloatArray

#: Resamples of a bootstrap by default.
N_RESAMPLES = 2_000

#: Counts held at a time while resampling (8 bytes each).
_COUNTS_AT_A_TIME = 2_000_000

#: Skewness over the root of the clusters, below which it changes nothing.
_NO_LEAN = 1e-9
#: Spread over the mean, below which values are taken for equal.
_ALIKE = 1e-12


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a nominal coverage ``level``, such as 0.95; ``low <= high``.

    ``method`` is ``clopper-pearson``, ``unseen-cluster``, ``student-t``, ``bootstrap-percentile``
    or ``bootstrap-basic``.
    """

    low: float
    high: float
    level: float
    method: str


def proportion_interval(n_successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Return Clopper and Pearson's exact interval of a proportion, within 0 and 1.

    Its coverage is never below ``level``, and it has some width even when every trial agrees.
    Wilson's interval is narrower, but where the true proportion is .99 it misses it in a tenth of
    all samples of ten. Effective numbers of successes and trials need not be whole. Raise
    ``ValueError`` when a number is out of range.

    References
    ----------
    Clopper and Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the
    Binomial", Biometrika, 1934.

    Examples
    --------
    >>> interval = proportion_interval(9, 10)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.555, 0.997)
    """
    if not (n > 0 and 0 <= n_successes <= n):
        raise ValueError(f"0 to n successes of more than 0 trials: got {n_successes} of {n}")
    _check_level(level)
    low, high = _exact_ends(np.array([n_successes]), np.array([n]), level)
    return Interval(float(low[0]), float(high[0]), level, "clopper-pearson")


def ratio_intervals(
    numerators: ArrayLike,
    denominators: ArrayLike,
    *,
    lows: ArrayLike,
    highs: ArrayLike,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of ratios of sums over clusters, of which something is known beforehand.

    Clusters are weighed at random, all weights being equally likely (the Bayesian bootstrap), and
    to those seen comes one that was not: of mean size, with the least ratio that can be for the
    lower end and with the greatest for the upper one. So an interval has some width even where all
    clusters agree, and a rare great loss that was not met is allowed for. For a proportion of
    clusters of one trial each this is Clopper and Pearson's interval. Ends are NaN where fewer than
    two clusters have a part, or all are alike and have no bounds.

    Parameters
    ----------
    numerators, denominators : float arrays of shape (n_clusters, n_ratios)
        Sums of each cluster, the latter not negative; a cluster whose denominator is 0 has no part
        in that ratio.
    lows, highs : float arrays of shape (n_ratios,)
        The least and the greatest ratio of one cluster. Where either is not finite, the ends are
        Student's t about the ratio, of which skewness is taken off after Hall (1992), and the wider
        of both.

    Notes
    -----
    Draws n_resamples * n_clusters numbers, 16 MB at a time, then multiplies matrices. That the
    bound holds for every distribution of equal sizes is a conjecture without a known
    counterexample; ``tests/benchmarks/coverage.py`` measures it, with unequal sizes too.

    References
    ----------
    Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable", Mathematical Methods of Statistics, 2005. Learned-Miller and Thomas, "A
    New Confidence Interval for the Mean of a Bounded Random Variable", arXiv:1905.06208, 2020.
    Rubin, "The Bayesian Bootstrap", Annals of Statistics, 1981. Hall, "On the Removal of Skewness
    by Transformation", Journal of the Royal Statistical Society B, 1992.
    """
    tops, bases = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    least, most = np.asarray(lows, np.float64), np.asarray(highs, np.float64)
    _check_level(level)
    n_parts = (bases > 0).sum(axis=0)
    low, high = np.full(len(n_parts), np.nan), np.full(len(n_parts), np.nan)
    is_known = np.isfinite(least) & np.isfinite(most)
    for chosen, ends in (
        (is_known, partial(_unseen_ends, n_resamples=n_resamples, seed=seed)),
        (~is_known, _student_ends),
    ):
        places = np.flatnonzero(chosen & (n_parts > 1))
        if places.size:
            low[places], high[places] = ends(
                tops[:, places], bases[:, places], least[places], most[places], level
            )
    return low, high


def _unseen_ends(
    tops: FloatArray,
    bases: FloatArray,
    least: FloatArray,
    most: FloatArray,
    level: float,
    *,
    n_resamples: int,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    k = len(least)
    drawn, unseen = weighed_totals(np.hstack([tops, bases]), n_resamples=n_resamples, seed=seed)
    # Of mean size among those that have a part.
    size = unseen[:, None] * (bases.sum(axis=0) / (bases > 0).sum(axis=0))
    whole = drawn[:, k:] + size
    low = np.quantile((drawn[:, :k] + size * least) / whole, (1 - level) / 2, axis=0)
    high = np.quantile((drawn[:, :k] + size * most) / whole, (1 + level) / 2, axis=0)
    value = tops.sum(axis=0) / bases.sum(axis=0)
    return np.minimum(low, value), np.maximum(high, value)


def _student_ends(
    tops: FloatArray, bases: FloatArray, least: FloatArray, most: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to load, and few ratios need it

    has_part = bases > 0
    n = has_part.sum(axis=0)
    value = tops.sum(axis=0) / bases.sum(axis=0)
    rests = np.where(has_part, tops - value * bases, 0.0)
    spread = np.sqrt((rests**2).sum(axis=0) / (n - 1))
    error = spread / np.sqrt(n) / (bases.sum(axis=0) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(spread > 0, (rests**3).sum(axis=0) / n / spread**3, 0.0)
    lean = skewness / np.sqrt(n)
    lean = np.where(np.abs(lean) < _NO_LEAN, _NO_LEAN, lean)
    student = stdtrit(n - 1, (1 + level) / 2)
    above = 3 / lean * (np.cbrt(1 + lean * (student - lean / 6)) - 1)
    below = 3 / lean * (np.cbrt(1 + lean * (-student - lean / 6)) - 1)
    # All alike and without bounds: nothing says how another would differ.
    error = np.where(spread > _ALIKE * np.abs(value), error, np.nan)
    low = value - error * np.maximum(student, above)
    high = value + error * np.maximum(student, -below)
    return np.maximum(low, least), np.minimum(high, most)


def median_interval(values: ArrayLike, *, level: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of a median, by order statistics: it holds whatever the values are.

    None of too few values; for 95 % six are needed.

    >>> median_interval(range(20)), median_interval([1, 2, 3, 4, 5])
    ((5.0, 14.0), None)
    """
    from scipy.stats import binom  # noqa: PLC0415 - slow to load, and few figures need it

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n_outside = int(binom.ppf((1 - level) / 2, len(ordered), 0.5))
    if n_outside == 0:
        return None
    return float(ordered[n_outside - 1]), float(ordered[-n_outside])


def weighed_totals(
    sums: FloatArray, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Sum columns over clusters weighed at random, and draw the weight of one more cluster.

    ``sums`` are of shape (n_clusters, n_columns), the answers of shapes (n_resamples, n_columns)
    and (n_resamples,). Weights have a mean of 1, and only their proportions mean something. Equal
    seeds over equally many clusters draw the same weights.

    References
    ----------
    Rubin, "The Bayesian Bootstrap", Annals of Statistics, 1981.
    """
    rng = np.random.default_rng(seed)
    rows_at_a_time = max(1, _COUNTS_AT_A_TIME // (len(sums) + 1))
    totals, unseen = np.empty((n_resamples, sums.shape[1])), np.empty(n_resamples)
    for start in range(0, n_resamples, rows_at_a_time):
        n_rows = min(rows_at_a_time, n_resamples - start)
        weights = rng.standard_exponential((n_rows, len(sums) + 1))
        totals[start : start + n_rows] = weights[:, :-1] @ sums
        unseen[start : start + n_rows] = weights[:, -1]
    return totals, unseen


def resample_totals(
    values: ArrayLike,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> FloatArray:
    """Sum columns over bootstrap resamples of whole clusters.

    ``values`` are of shape (n_rows, n_columns), and the answer of (n_resamples, n_columns); for a
    mean, the values and the weights are two columns. Rows of equal keys of ``clusters`` are drawn
    together; each row is its own cluster by default. The answer does not depend on the order of
    rows when keys are given. Equal seeds over equally many clusters draw the same resamples, so
    statistics of several calls are paired. Raise ``ValueError`` when ``values`` is empty, no matrix
    or not finite, or ``clusters`` is of another length.

    Notes
    -----
    Draws n_resamples * n_clusters numbers, 16 MB of counts at a time, then multiplies matrices.

    References
    ----------
    Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 8 and 13.
    """
    matrix = _check_matrix(values)
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
    """Return the percentile interval of statistics, of shape (n_resamples,).

    Raise ``ValueError`` when a statistic is not finite or ``level`` is out of range.

    >>> percentile_interval([1.0, 2.0, 3.0, 4.0, 5.0], level=0.5)
    Interval(low=2.0, high=4.0, level=0.5, method='bootstrap-percentile')
    """
    low, high = _quantiles(statistics, level)
    return Interval(low, high, level, "bootstrap-percentile")


def mean_interval(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    least: float = -math.inf,
    most: float = math.inf,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """Return the interval of a (weighted) mean, or None over fewer than two clusters.

    ``values`` and ``weights``, above 0, are of shape (n_rows,). For a paired comparison, give the
    differences of the two models' values. Rows of equal keys of ``clusters`` stand or fall
    together, such as the decisions of one context. ``least`` and ``most`` bound a value, as in
    ``ratio_intervals``; without them, intervals of few clusters of skewed values may miss the mean
    more often than the level says. Raise ``ValueError`` when an array is empty, not finite or of
    another length, or a weight is not above 0.

    >>> interval = mean_interval([0.0, 0.5, 1.0, 0.5], least=0.0, most=1.0)
    >>> round(interval.low, 1), round(interval.high, 1), interval.method
    (0.1, 0.9, 'unseen-cluster')
    """
    column = np.asarray(values, dtype=np.float64)
    weight = np.ones(column.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if column.ndim != 1 or weight.shape != column.shape or not (weight > 0).all():
        raise ValueError("one value and one weight above 0 a row")
    sums = _check_matrix(np.stack([column * weight, weight], axis=1))
    if clusters is not None:
        sums = _sum_by_cluster(sums, clusters)
    low, high = ratio_intervals(
        sums[:, :1],
        sums[:, 1:],
        lows=[least],
        highs=[most],
        level=level,
        n_resamples=n_resamples,
        seed=seed,
    )
    if np.isnan(low[0]):
        return None
    is_known = math.isfinite(least) and math.isfinite(most)
    method = "unseen-cluster" if is_known else "student-t"
    return Interval(float(low[0]), float(high[0]), level, method)


def _exact_ends(
    successes: FloatArray, trials: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to load, and no decision needs it

    failures = trials - successes
    with np.errstate(invalid="ignore"):
        low = betaincinv(np.maximum(successes, 0), failures + 1, (1 - level) / 2)
        high = betaincinv(successes + 1, np.maximum(failures, 0), (1 + level) / 2)
    return np.where(successes <= 0, 0.0, low), np.where(failures <= 0, 1.0, high)


def _check_matrix(values: ArrayLike) -> FloatArray:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0 or not np.isfinite(matrix).all():
        raise ValueError(f"a finite matrix of one row or more: got shape {matrix.shape}")
    return matrix


def _sum_by_cluster(
    matrix: FloatArray, clusters: Sequence[object] | NDArray[np.generic]
) -> FloatArray:
    if len(clusters) != len(matrix):
        raise ValueError(f"{len(matrix)} rows and {len(clusters)} cluster keys")
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    return np.stack([np.bincount(index, column) for column in matrix.T], axis=1)


def _quantiles(statistics: ArrayLike, level: float) -> tuple[float, float]:
    _check_level(level)
    values = np.asarray(statistics, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("one finite statistic or more")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level between 0 and 1: got {level}")
