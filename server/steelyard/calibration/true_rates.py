"""The share of an outcome that is true, by a model's answers to all and people's to a few.

People check answers that were drawn by chance. What the model says of all the others makes the
estimate narrower than the checks alone where the model is any good, and never biased where it is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.calibration.intervals import proportion_interval

#: Checked answers of either kind below which the exact interval of the checks alone stands.
_FEWEST_OF_A_KIND = 5
#: Squared error that is added to what was seen, since the errors of a good model are rare.
_UNSEEN_ERROR = 1.0


@dataclass(frozen=True, slots=True)
class TrueRate:
    """A true share with its 95 % interval, and what it rests on.

    Parameters
    ----------
    value, low, high : float
        0 to 1.
    n : int
        Answers that were checked.
    more : int
        Further checks that about halve the interval.
    """

    value: float
    low: float
    high: float
    n: int
    more: int


def true_rate(
    mean_probability: float,
    n_answers: int,
    probabilities: ArrayLike,
    came_true: ArrayLike,
    *,
    level: float = 0.95,
) -> TrueRate | None:
    """Return how often an outcome is true among answers of which some were checked.

    The mean of the checks is moved by what the model says of all answers less what it says of the
    checked ones, times the slope that leaves the least variance. The interval is Wilson's at the
    number of plain checks that would have that variance.

    Parameters
    ----------
    mean_probability : float
        The outcome's mean probability over all answers, 0 to 1.
    n_answers : int
        How many those are.
    probabilities, came_true : float arrays of shape (n_checks,)
        Of the answers that were drawn by chance and checked: the outcome's probability, and 1 where
        it came true, 0 where not, or a probability where that is not certain.
    level : float, default 0.95
        Coverage, between 0 and 1.

    Returns
    -------
    TrueRate or None
        None of fewer than two checks.

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
    arXiv:2311.01453, 2023. Cochran, "Sampling Techniques", 1977, chapter 7. Wilson, "Probable
    Inference, the Law of Succession, and Statistical Inference", Journal of the American Statistical
    Association, 1927.

    Examples
    --------
    >>> rate = true_rate(0.5, 1000, [0.9, 0.8, 0.2, 0.1] * 10, [1, 1, 0, 0] * 10)
    >>> round(rate.value, 2), round(rate.low, 2), round(rate.high, 2), rate.n
    (0.5, 0.44, 0.56, 40)
    """
    model, truth = np.asarray(probabilities, np.float64), np.asarray(came_true, np.float64)
    if model.shape != truth.shape or model.ndim != 1 or len(model) > n_answers:
        msg = f"as many outcomes as probabilities, of {n_answers} answers at most"
        raise ValueError(msg)
    n = len(truth)
    if n < 2:
        return None
    more = _more_to_halve(n, n_answers)
    n_true = float(truth.sum())
    if min(n_true, n - n_true) < _FEWEST_OF_A_KIND:
        exact = proportion_interval(n_true, n, level=level)
        return TrueRate(n_true / n, exact.low, exact.high, n, more)
    spread = float(model.var(ddof=1))
    slope = float(np.cov(truth, model)[0, 1]) / spread if spread > 0 else 0.0
    slope = max(slope, 0.0)
    value = float(truth.mean()) + slope * (mean_probability - float(model.mean()))
    rests = truth - slope * model
    squares = float(((rests - rests.mean()) ** 2).sum()) + _UNSEEN_ERROR
    variance = squares / (n - 2) / n * (1 - n / n_answers)
    least = 0.5 / n_answers
    value = min(max(value, least), 1 - least)
    if variance == 0:
        return TrueRate(value, value, value, n, 0)
    low, high = _wilson(value, value * (1 - value) / variance, level, n - 2)
    return TrueRate(value, low, high, n, more)


def _wilson(share: float, n: float, level: float, freedom: int) -> tuple[float, float]:
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to load, and no decision needs it

    reach = float(stdtrit(freedom, (1 + level) / 2))
    middle = (share + reach**2 / (2 * n)) / (1 + reach**2 / n)
    half = reach * math.sqrt(share * (1 - share) / n + reach**2 / (4 * n**2)) / (1 + reach**2 / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _more_to_halve(n: int, n_answers: int) -> int:
    """Return further checks after which the variance is a quarter; all answers at most."""
    n_after = 1 / ((1 / n - 1 / n_answers) / 4 + 1 / n_answers)
    return max(math.ceil(n_after) - n, 0)
