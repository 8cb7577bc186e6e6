"""The share of an outcome that is true, by a model's answers to all and people's to a few.

People check answers that were drawn by chance, of all or of each stratum. The model's answers to all
the others make the estimate narrower than the checks alone where the model is any good, and never
biased where it is not.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.calibration.intervals import proportion_interval

#: Checked answers of either kind below which a binomial interval of the checks alone stands.
_FEWEST_OF_A_KIND = 5
#: Standard deviations of a 95 % interval.
_REACH = 1.959964
#: Checks below which no slope is drawn through them.
_FEWEST_TO_TUNE = 10
#: Where the strata of an outcome's probability begin, but for the first.
STRATUM_EDGES = (0.1, 0.5, 0.9)
N_STRATA = len(STRATUM_EDGES) + 1
#: Added to the spread of a stratum by its model, .5 at most, which may be wrong.
_SPREAD_ANYWAY = 0.5
#: Checks of a stratum below which its own share is not estimated.
FEWEST_OF_STRATUM = 5
#: Squared error that is added to that of the checks, since errors of a good model are rare.
_UNSEEN_ERROR = 1.0
#: Difference of two shares that are taken for one.
_SAME_SHARE = 1e-9


@dataclass(frozen=True, slots=True)
class TrueRate:
    """A true share with its 95 % interval, 0 to 1.

    ``n`` answers were checked; ``more`` further checks about halve the interval.
    """

    value: float
    low: float
    high: float
    n: int
    more: int


@dataclass(frozen=True, slots=True)
class Stratum:
    """Some of the answers, of which as many were drawn by chance as their checks.

    ``mean_probability`` is the outcome's over all ``n_answers`` of it, 0 to 1. ``probabilities``
    and ``came_true``, of shape (n_checks,), are those of the checked ones, as ``true_rate`` takes
    them.
    """

    mean_probability: float
    n_answers: int
    probabilities: ArrayLike
    came_true: ArrayLike


def true_rate(
    mean_probability: float,
    n_answers: int,
    probabilities: ArrayLike,
    came_true: ArrayLike,
    *,
    level: float = 0.95,
) -> TrueRate | None:
    """Return how often an outcome is true among answers of which some were checked.

    The mean of the checks is moved by the model's share among all answers less its share among the
    checked ones, times the slope that leaves the least variance. A slope is shrunk by its own
    uncertainty, to 0 where the model does not pay. The interval is Wilson's at the number of plain
    checks that would have that variance. None of fewer than two checks.

    Parameters
    ----------
    mean_probability
        The outcome's mean probability over all ``n_answers``, 0 to 1.
    probabilities, came_true : float arrays of shape (n_checks,)
        Of the answers that were drawn by chance and checked: the outcome's probability, and 1 where
        it came true, 0 where not, or a probability where that is not certain.

    Raises
    ------
    ValueError
        When the arrays differ in length, or there are more checks than answers.

    Notes
    -----
    ``tests/benchmarks/true_rates.py`` measures coverage and width in made-up worlds.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, "PPI++: Efficient Prediction-Powered Inference",
    arXiv:2311.01453, 2023. Cochran, "Sampling Techniques", 1977, chapter 7. Copas, "Regression,
    Prediction and Shrinkage", Journal of the Royal Statistical Society B, 1983. Wilson, "Probable
    Inference, the Law of Succession, and Statistical Inference", Journal of the American
    Statistical Association, 1927.

    Examples
    --------
    >>> rate = true_rate(0.5, 1000, [0.9, 0.8, 0.2, 0.1] * 10, [1, 1, 0, 0] * 10)
    >>> round(rate.value, 2), round(rate.low, 2), round(rate.high, 2), rate.n
    (0.5, 0.44, 0.56, 40)
    """
    model, truth = _checks(probabilities, came_true, n_answers)
    n = len(truth)
    if n < 2:
        return None
    n_true = float(truth.sum())
    if min(n_true, n - n_true) < _FEWEST_OF_A_KIND:
        exact = proportion_interval(n_true, n, level=level)
        more = _more_to_halve(n, n_answers)
        return TrueRate(n_true / n, exact.low, exact.high, n, more)
    value, variance, freedom = _moved_mean(mean_probability, n_answers, model, truth, _UNSEEN_ERROR)
    return _rate(value, variance, n, n_answers, freedom, level)


def stratified_rate(strata: Sequence[Stratum], *, level: float = 0.95) -> TrueRate | None:
    """Return how often an outcome is true among answers that were checked by strata.

    Each stratum is estimated as ``true_rate`` does, and counts by how many answers it has: it does
    not matter in which proportion the strata were checked. Every answer is in one of them. With few
    of a kind the interval is the binomial mid-p one at the effective number of checks, because the
    exact one would be wider than that of as many checks drawn without strata. None where a stratum
    has fewer than five checks, and more answers than checks.

    References
    ----------
    Berry and Armitage, "Mid-P Confidence Intervals: A Brief Review", The Statistician, 1995.
    Fisch, Maynez, Hofer and others, "Stratified Prediction-Powered Inference for Hybrid Language
    Model Evaluation", arXiv:2406.04291, 2024. Satterthwaite, "An Approximate Distribution of
    Estimates of Variance Components", Biometrics Bulletin, 1946.

    Examples
    --------
    >>> rare = Stratum(0.8, 100, [0.8] * 20, [1, 1, 1, 0] * 5)
    >>> rest = Stratum(0.1, 900, [0.1] * 40, [0] * 39 + [1])
    >>> rate = stratified_rate([rare, rest])
    >>> round(rate.value, 4), rate.n
    (0.0975, 60)
    """
    n_answers = sum(stratum.n_answers for stratum in strata)
    value = share = variance = plain_variance = squares = spread = 0.0
    n = 0
    for stratum in strata:
        model, truth = _checks(stratum.probabilities, stratum.came_true, stratum.n_answers)
        n_checks = len(truth)
        if n_checks < min(FEWEST_OF_STRATUM, stratum.n_answers):
            return None
        if not stratum.n_answers:
            continue
        weight, plain = stratum.n_answers / n_answers, float(truth.mean())
        mean, of_mean, freedom = _moved_mean(
            stratum.mean_probability, stratum.n_answers, model, truth, weight * _UNSEEN_ERROR
        )
        n += n_checks
        value, share = value + weight * mean, share + weight * plain
        variance += weight**2 * of_mean
        plain_variance += weight**2 * plain * (1 - plain) / n_checks
        squares += (weight**2 * of_mean) ** 2 / max(freedom, 1)
        spread += weight**2 / n_checks
    if n < 2:
        return None
    # As many plain checks would be as sure.
    like = min(1 / spread, share * (1 - share) / plain_variance if plain_variance else math.inf)
    if variance and min(share, 1 - share) * like < _FEWEST_OF_A_KIND:
        low = 1 - _mid_p_high((1 - share) * like, like, level)
        high = _mid_p_high(share * like, like, level)
        return TrueRate(share, low, high, n, _more_to_halve(n, n_answers))
    freedom = variance**2 / squares if squares else n - 2
    return _rate(value, variance, n, n_answers, freedom, level)


def corrected_rate(
    n_yes: float, n_answers: int, sensitivity: tuple[float, int], specificity: tuple[float, int]
) -> TrueRate | None:
    """Return how often an outcome is true where only a model's two rates of being right are known.

    The rates come from other answers, whose share of the outcome may differ; the estimate is right
    only if the model's sensitivity and specificity are the same here. Where some answers of the
    window were checked, ``true_rate`` needs no such assumption.

    ``n_yes`` of the answers say the outcome. ``sensitivity`` has, of the answers of which it was
    true, how many said it, and how many those were; ``specificity``, of the others, how many did
    not. ``n`` are the answers of both. None where the model says the outcome no more often when it
    is true than when it is not, and where one of the numbers of answers is 0.

    References
    ----------
    Rogan and Gladen, "Estimating Prevalence from the Results of a Screening Test", American Journal
    of Epidemiology, 1978. Lang and Reiczigel, "Confidence Limits for Prevalence of Disease Adjusted
    for Estimated Sensitivity and Specificity", Preventive Veterinary Medicine, 2014.

    Examples
    --------
    >>> found = corrected_rate(500, 1_000, (180, 200), (160, 200))
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (0.43, 0.36, 0.5)
    """
    (n_hits, n_so), (n_rejected, n_not_so) = sensitivity, specificity
    if not n_answers or not n_so or not n_not_so:
        return None
    apart = n_hits / n_so + n_rejected / n_not_so - 1
    hits, rejected = (n_hits + 1) / (n_so + 2), (n_rejected + 1) / (n_not_so + 2)
    apart_adjusted = hits + rejected - 1
    if apart <= 0 or apart_adjusted <= 0:
        return None
    value = (n_yes / n_answers + n_rejected / n_not_so - 1) / apart
    n = n_answers + _REACH**2
    share = (n_yes + _REACH**2 / 2) / n
    middle = (share + rejected - 1) / apart_adjusted
    of_hits = hits * (1 - hits) / (n_so + 2)
    of_rejected = rejected * (1 - rejected) / (n_not_so + 2)
    moved = 2 * _REACH**2 * (middle * of_hits - (1 - middle) * of_rejected)
    variance = share * (1 - share) / n + middle**2 * of_hits + (1 - middle) ** 2 * of_rejected
    half = _REACH * math.sqrt(variance) / apart_adjusted
    low, high = min(max(middle + moved - half, 0.0), 1.0), min(max(middle + moved + half, 0.0), 1.0)
    value = min(max(value, low), high)
    n_labelled = n_so + n_not_so
    return TrueRate(value, low, high, n_labelled, 3 * n_labelled)


def stratum_of(probability: float) -> int:
    """Return the number of the stratum of an outcome's probability, from 0.

    >>> [stratum_of(probability) for probability in (0.05, 0.1, 0.6, 0.95)]
    [0, 1, 2, 3]
    """
    return bisect_right(STRATUM_EDGES, probability)


def strata_in_turn(
    sizes: Sequence[int], mean_probabilities: Sequence[float], n: int
) -> Iterator[int]:
    """Yield from which stratum each of ``n`` checks is drawn; at most as many as there are answers.

    Each has five first, and then as many as its answers are and are unlike each other: ``sizes``
    are the answers of each stratum, with the outcome's mean probability in each, 0 to 1.

    References
    ----------
    Neyman, "On the Two Different Aspects of the Representative Method", Journal of the Royal
    Statistical Society, 1934.

    Examples
    --------
    >>> list(strata_in_turn([2, 100], [0.5, 0.5], 9))
    [0, 0, 1, 1, 1, 1, 1, 1, 1]
    """
    drawn = [0] * len(sizes)
    pairs = zip(sizes, mean_probabilities, strict=True)
    weights = [size * (math.sqrt(mean * (1 - mean)) + _SPREAD_ANYWAY) for size, mean in pairs]
    for _ in range(min(n, sum(sizes))):
        left = [place for place, size in enumerate(sizes) if drawn[place] < size]
        first = next((place for place in left if drawn[place] < FEWEST_OF_STRATUM), None)
        if first is None:
            first = max(left, key=lambda place: weights[place] / (drawn[place] + 1))
        drawn[first] += 1
        yield first


def _checks(
    probabilities: ArrayLike, came_true: ArrayLike, n_answers: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    model, truth = np.asarray(probabilities, np.float64), np.asarray(came_true, np.float64)
    if model.shape != truth.shape or model.ndim != 1 or len(model) > n_answers:
        raise ValueError(f"as many outcomes as probabilities, of {n_answers} answers at most")
    return model, truth


def _moved_mean(
    mean_probability: float,
    n_answers: int,
    model: NDArray[np.float64],
    truth: NDArray[np.float64],
    unseen: float,
) -> tuple[float, float, float]:
    """Return the mean of the checks moved by the model, its variance, and degrees of freedom."""
    n = len(truth)
    if n == n_answers:
        return float(truth.mean()), 0.0, n - 1
    (of_truth, both), (_, spread) = np.cov(truth, model).tolist()
    slope = sureness = 0.0
    if n >= _FEWEST_TO_TUNE and both > 0:
        slope = both / spread
        squared_error = (of_truth - slope * both) / (n - 2) / spread
        sureness = max(1 - squared_error / slope**2, 0.0)
        slope *= sureness
    value = float(truth.mean()) + slope * (mean_probability - float(model.mean()))
    rests = truth - slope * model
    squares = float(((rests - rests.mean()) ** 2).sum()) + unseen
    freedom = n - 1 - sureness
    return value, squares / freedom / n * (1 - n / n_answers), freedom


def _rate(
    value: float, variance: float, n: int, n_answers: int, freedom: float, level: float
) -> TrueRate:
    """Return a rate with Wilson's interval at the number of plain checks that have the variance."""
    least = 0.5 / n_answers
    value = min(max(value, least), 1 - least)
    if variance == 0:
        return TrueRate(value, value, value, n, 0)
    low, high = _wilson(value, value * (1 - value) / variance, level, freedom)
    return TrueRate(value, low, high, n, _more_to_halve(n, n_answers))


def _wilson(share: float, n: float, level: float, freedom: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to load, and no decision needs it

    reach = float(stdtrit(freedom, (1 + level) / 2))
    middle = (share + reach**2 / (2 * n)) / (1 + reach**2 / n)
    half = reach * math.sqrt(share * (1 - share) / n + reach**2 / (4 * n**2)) / (1 + reach**2 / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _mid_p_high(n_true: float, n: float, level: float) -> float:
    """Return the share at which ``n_true`` of ``n`` or fewer are as rare as the level says."""
    from scipy.special import betainc  # noqa: PLC0415 - slow to load, and no decision needs it

    low, high = n_true / n, 1.0
    while high - low > _SAME_SHARE:
        share = (low + high) / 2
        fewer = betainc(n - n_true + 1, n_true, 1 - share) if n_true > 0 else 0.0
        if fewer + betainc(n - n_true, n_true + 1, 1 - share) > 1 - level:
            low = share
        else:
            high = share
    return high


def _more_to_halve(n: int, n_answers: int) -> int:
    """Return further checks after which the variance is a quarter; all answers at most."""
    n_after = 1 / ((1 / n - 1 / n_answers) / 4 + 1 / n_answers)
    return max(math.ceil(n_after) - n, 0)
