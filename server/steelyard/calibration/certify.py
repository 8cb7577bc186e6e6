"""Bounds on how often answers are wrong that hold with a stated confidence (Learn then Test).

Candidates, such as thresholds, are tested in an order that is fixed without their labels, and those
that pass hold together with the confidence of a single test. Each is tested over contexts, since the
decisions of one context stand or fall together: exactly where each context has one decision that
is right or wrong, and elsewhere as ``steelyard.calibration.intervals`` makes its intervals.

References
----------
Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test: Calibrating Predictive Algorithms to
Achieve Risk Control", arXiv:2110.01052, 2022. Wiens, "A Fixed Sequence Bonferroni Procedure for
Testing Multiple Endpoints", Pharmaceutical Statistics, 2003.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.calibration.bins import FloatArray
from steelyard.calibration.intervals import weighed_totals

#: Resamples of a test, of which a tail counts.
_RESAMPLES = 4_000
#: Thresholds that are tested at most, at even shares of the answers.
_MAX_CANDIDATES = 40
#: Places at which the tests of thresholds begin; each has an equal part of the error probability.
_STARTS = 3
#: Most times as many contexts that are looked for.
_MAX_GROWTH = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTests:
    """How often candidates are wrong, and how likely that is by chance; shape (n_candidates,)."""

    #: What each may be wrong at most.
    error: float
    rates: FloatArray
    #: The greatest chance of so few errors were a candidate wrong more often than it may be.
    p_values: FloatArray
    #: Contexts that have a part in each.
    n_contexts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CertifiedThreshold:
    """The threshold from which answers are certified, or the candidate that is nearest to it."""

    threshold: float
    #: False where the data certify none.
    holds: bool
    #: Measured among the answers at or above the threshold.
    error: float
    #: Share of all decisions that are answered.
    answered: float
    #: Contexts of those.
    n_contexts: int
    #: Further rows that would certify it, were they answered alike; None where no number would.
    missing_rows: int | None


def run_tests(
    wrong: ArrayLike, answered: ArrayLike, contexts: ArrayLike, *, error: float
) -> ErrorTests:
    """Test for each candidate that it is wrong at most so often, an ``error`` between 0 and 1.

    ``wrong`` and ``answered``, of shape (n_decisions, n_candidates), are 1 where a candidate
    answers a decision, and where it answers it wrongly; ``contexts``, (n_decisions,), are ints.
    """
    _, codes = np.unique(np.asarray(contexts), return_inverse=True)
    tops = _sums(np.asarray(wrong, np.float64), codes)
    bases = _sums(np.asarray(answered, np.float64), codes)
    total, n_parts = bases.sum(axis=0), (bases > 0).sum(axis=0)
    rates = np.divide(tops.sum(axis=0), total, out=np.ones(len(total)), where=total > 0)
    if bases.max(initial=0) <= 1 and np.isin(tops, (0, 1)).all():
        p_values = _chance(tops.sum(axis=0), total, error)
    else:
        drawn, unseen = weighed_totals(np.hstack([tops, bases]), n_resamples=_RESAMPLES)
        # To the contexts seen comes one of mean size that is wrong throughout.
        size = unseen[:, None] * (total / np.maximum(n_parts, 1))
        k = len(total)
        p_values = (drawn[:, :k] + size > error * (drawn[:, k:] + size)).mean(axis=0)
    return ErrorTests(error, rates, np.where(n_parts > 0, p_values, 1.0), n_parts.astype(np.int64))


def last_passed(tests: ErrorTests, starts: Collection[int], *, confidence: float) -> int | None:
    """Return the last candidate in order that passes; ``None`` where none does.

    Tests begin at each start with an equal part of the error probability. A candidate that passes hands
    its part to the next one; one that fails loses it.
    """
    part, level, passed = (1 - confidence) / len(starts), 0.0, None
    for place, p_value in enumerate(tests.p_values):
        level += part * (place in starts)
        if p_value <= level:
            passed = place
        else:
            level = 0.0
    return passed


def missing_rows(
    tests: ErrorTests, starts: Collection[int], *, n_rows: int, confidence: float
) -> int | None:
    """Return how many more rows would let a candidate pass by itself, were they answered alike.

    ``None`` where each is wrong as often as it may be, or more: no number of rows would.
    """
    level = (1 - confidence) / len(starts)
    growth = [
        _growth(tests, place, level)
        for place in np.flatnonzero((tests.rates < tests.error) & (tests.p_values > level))
    ]
    if not growth or min(growth) > _MAX_GROWTH:
        return None
    return max(1, math.ceil((min(growth) - 1) * n_rows))


def certify_threshold(
    p_top: ArrayLike,
    right: ArrayLike,
    contexts: ArrayLike,
    *,
    error: float,
    confidence: float = 0.95,
) -> CertifiedThreshold:
    """Return the lowest top probability from which answers are wrong at most so often.

    All arrays are of shape (n_decisions,); ``right`` is 1 where the top outcome is the label's, 0
    elsewhere. ``error``, between 0 and 1, is how often answers at or above the threshold may be
    wrong; ``confidence``, how often a threshold so chosen keeps to that, over draws of the rows.
    Assumes that new contexts come from where these come from.
    """
    probability, is_right = np.asarray(p_top, np.float64), np.asarray(right, np.float64)
    codes = np.asarray(contexts)
    thresholds, counts = _candidates(probability)
    answered = (probability[:, None] >= thresholds).astype(np.float64)
    tests = run_tests(answered * (1 - is_right)[:, None], answered, codes, error=error)
    starts = _starts(probability, counts, error=error, confidence=confidence)
    passed = last_passed(tests, starts, confidence=confidence)
    place = min(starts, key=lambda start: tests.p_values[start]) if passed is None else passed
    n_rows = len(np.unique(codes))
    return CertifiedThreshold(
        threshold=float(thresholds[place]),
        holds=passed is not None,
        error=float(tests.rates[place]),
        answered=float(answered[:, place].mean()),
        n_contexts=int(tests.n_contexts[place]),
        missing_rows=0
        if passed is not None
        else missing_rows(tests, starts, n_rows=n_rows, confidence=confidence),
    )


def _candidates(p_top: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return thresholds to test, highest first, and how many answers lie at or above each."""
    ordered = np.sort(-p_top)
    n = len(ordered)
    ends = np.linspace(1, n, min(n, _MAX_CANDIDATES)).round().astype(np.int64)
    thresholds = np.unique(ordered[ends - 1])
    return -thresholds, np.searchsorted(ordered, thresholds, side="right")


def _starts(
    p_top: FloatArray, counts: NDArray[np.int64], *, error: float, confidence: float
) -> frozenset[int]:
    """Return the candidates at which tests begin, chosen without labels.

    One is where the probabilities themselves promise the clearest pass, of those with enough answers to
    pass at all. Since they may promise too much, the others have fewer answers, down to the fewest that
    pass with hardly an error.
    """
    expected = np.cumsum(np.sort(1 - p_top))[counts - 1]
    promise = _chance(expected, counts.astype(np.float64), error)
    fewest, fewest_of_several = (
        spare * math.log((1 - confidence) / parts) / math.log1p(-error)
        for spare, parts in ((1.2, 1), (1.5, _STARTS))
    )
    least = min(int(np.searchsorted(counts, fewest)), len(counts) - 1)
    best = least + int(np.argmin(promise[least:]))
    most = float(counts[best])
    wished = np.geomspace(min(fewest_of_several, most), most, _STARTS)
    return frozenset(int(place) for place in np.searchsorted(counts[: best + 1], wished - 0.5))


def _chance(n_wrong: FloatArray, n: FloatArray, error: float) -> FloatArray:
    """Return the binomial chance of at most so many errors; numbers need not be whole."""
    from scipy.special import betainc  # noqa: PLC0415 - slow to load, and no decision needs it

    chance: FloatArray = betainc(np.maximum(n - n_wrong, 1e-12), n_wrong + 1, 1 - error)
    return chance


def _sums(matrix: FloatArray, codes: NDArray[np.intp]) -> FloatArray:
    return np.stack([np.bincount(codes, column) for column in matrix.T], axis=1)


def _growth(tests: ErrorTests, place: np.intp, level: float) -> float:
    """Return how many times as many contexts would let a candidate pass, its rate staying."""
    rate, p_value = float(tests.rates[place]), float(tests.p_values[place])
    n = float(tests.n_contexts[place])
    # What the contexts are worth: so many single trials would be as likely by chance.
    worth = _trials(rate, tests.error, p_value, most=n)
    return _trials(rate, tests.error, level, most=n * _MAX_GROWTH) / worth


def _trials(rate: float, error: float, level: float, *, most: float) -> float:
    """Return the fewest trials, up to a number, of which so few errors are as unlikely as a level."""
    low, high = 1.0, max(most, 1.0)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        if _chance(np.array(middle * rate), np.array(middle), error) > level:
            low = middle
        else:
            high = middle
    return high
