"""Measures of probabilistic decisions: accuracy, log loss, Brier score, calibration error.

Decisions differ in their number of outcomes. Everything here reads two float arrays of shape
(n_decisions, most_outcomes), padded with zeros on the right, as ``pad_rows`` makes them: a padded
outcome has probability 0 and target 0, and so adds nothing to any measure. ``weights``, of shape
(n_decisions,), count a decision so many times. ``ValueError`` is raised where the shapes differ, or
a value is not finite or not within 0 and 1. Reliability tables are in
``steelyard.calibration.reliability``, intervals in ``steelyard.calibration.intervals``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.calibration.bins import N_BINS, FloatArray, bin_totals, ece_from_totals

#: The least probability the log loss reads: an impossible answer costs 13.8 nats, not infinity.
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """The measures of a set of decisions.

    ``n`` decisions; ``accuracy``, 0 to 1; ``log_loss`` in nats; ``brier``, 0 to 2; ``ece``, the
    expected calibration error of the top outcome, 0 to 1.
    """

    n: int
    accuracy: float
    log_loss: float
    brier: float
    ece: float


def pad_rows(rows: Sequence[ArrayLike]) -> FloatArray:
    """Stack vectors of different lengths, a decision each, padded with zeros on the right.

    Raise ``ValueError`` when there is no row, or a row is empty or not a vector.

    Examples
    --------
    >>> pad_rows([[0.25, 0.75], [0.5, 0.25, 0.25]]).tolist()
    [[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]
    """
    vectors = [np.asarray(row, dtype=np.float64) for row in rows]
    if not vectors or any(vector.ndim != 1 or vector.size == 0 for vector in vectors):
        raise ValueError("at least one row, and every row a vector of one value or more")
    lengths = np.array([vector.size for vector in vectors])
    padded = np.zeros((len(vectors), int(lengths.max())))
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(vectors)
    return padded


def decision_hits(probabilities: ArrayLike, targets: ArrayLike) -> FloatArray:
    """Return 1 where the top outcome is the target's largest, else 0; ties go to the first."""
    forecast, truth = _check_pair(probabilities, targets)
    return _hits(forecast, truth)


def decision_log_losses(probabilities: ArrayLike, targets: ArrayLike) -> FloatArray:
    """Return each decision's cross-entropy against its target distribution, in nats.

    Probabilities below ``LEAST_PROBABILITY`` are read as that. Takes logarithms only where a target
    has mass, so that hard targets over many outcomes cost one logarithm a decision.
    """
    forecast, truth = _check_pair(probabilities, targets)
    return _log_losses(forecast, truth)


def decision_brier_scores(probabilities: ArrayLike, targets: ArrayLike) -> FloatArray:
    """Return each decision's squared error, summed over its outcomes: 0 to 2.

    References
    ----------
    Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review,
    1950.
    """
    forecast, truth = _check_pair(probabilities, targets)
    return _brier_scores(forecast, truth)


def accuracy(
    probabilities: ArrayLike, targets: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Return the share of decisions whose top outcome is the target's largest.

    Examples
    --------
    >>> accuracy([[0.6, 0.4], [0.6, 0.4]], [[1, 0], [0, 1]])
    0.5
    """
    return _mean(decision_hits(probabilities, targets), weights)


def log_loss(
    probabilities: ArrayLike, targets: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Return the mean cross-entropy against the targets, in nats.

    Examples
    --------
    >>> round(log_loss([[0.5, 0.5]], [[1, 0]]), 6)
    0.693147
    """
    return _mean(decision_log_losses(probabilities, targets), weights)


def brier(
    probabilities: ArrayLike, targets: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """Return the mean over decisions of the squared error summed over outcomes.

    Examples
    --------
    >>> brier([[0.5, 0.5]], [[1, 0]])
    0.5
    """
    return _mean(decision_brier_scores(probabilities, targets), weights)


def ece(
    probabilities: ArrayLike,
    targets: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    n_bins: int = N_BINS,
) -> float:
    """Return the expected calibration error of the top outcome, in bins of equal width.

    The mean over bins, weighted by their decisions, of the distance between accuracy and mean top
    probability. Each bin is open below and closed above; the first holds 0 too. Biased upwards on
    few decisions: a perfectly calibrated forecaster measures about 0.02 on 1,000 of them.

    References
    ----------
    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017. Naeini et al., "Obtaining
    Well Calibrated Probabilities Using Bayesian Binning", AAAI 2015.

    Examples
    --------
    >>> round(ece([[0.75, 0.25], [0.75, 0.25]], [[1, 0], [1, 0]]), 6)
    0.25
    """
    forecast, truth = _check_pair(probabilities, targets)
    weight = _check_weights(weights, len(truth))
    totals = bin_totals(forecast.max(axis=1), _hits(forecast, truth), weight, n_bins)
    return float(ece_from_totals(totals))


def summarise(
    probabilities: ArrayLike, targets: ArrayLike, *, weights: ArrayLike | None = None
) -> MetricSummary:
    """Return every measure of a set of decisions.

    Examples
    --------
    >>> summarise([[1.0, 0.0]], [[1, 0]])
    MetricSummary(n=1, accuracy=1.0, log_loss=0.0, brier=0.0, ece=0.0)
    """
    forecast, truth = _check_pair(probabilities, targets)
    weight = _check_weights(weights, len(truth))
    hits = _hits(forecast, truth)
    return MetricSummary(
        n=len(hits),
        accuracy=_mean(hits, weight),
        log_loss=_mean(_log_losses(forecast, truth), weight),
        brier=_mean(_brier_scores(forecast, truth), weight),
        ece=float(ece_from_totals(bin_totals(forecast.max(axis=1), hits, weight))),
    )


def _hits(forecast: FloatArray, truth: FloatArray) -> FloatArray:
    return np.asarray(forecast.argmax(axis=1) == truth.argmax(axis=1), dtype=np.float64)


def _log_losses(forecast: FloatArray, truth: FloatArray) -> FloatArray:
    rows, columns = np.nonzero(truth)
    logs = np.log(np.maximum(forecast[rows, columns], LEAST_PROBABILITY))
    # "0.0 -" rather than "-": a perfect forecast loses 0, not minus 0.
    losses = 0.0 - np.bincount(rows, truth[rows, columns] * logs, len(truth))
    return np.asarray(losses, dtype=np.float64)


def _brier_scores(forecast: FloatArray, truth: FloatArray) -> FloatArray:
    errors = forecast - truth
    return np.asarray(np.einsum("ij,ij->i", errors, errors), dtype=np.float64)


def _check_pair(probabilities: ArrayLike, targets: ArrayLike) -> tuple[FloatArray, FloatArray]:
    forecast = np.asarray(probabilities, dtype=np.float64)
    truth = np.asarray(targets, dtype=np.float64)
    if forecast.ndim != 2 or forecast.shape != truth.shape or forecast.size == 0:
        msg = f"two equal shapes (n, k), not empty: got {forecast.shape} and {truth.shape}"
        raise ValueError(msg)
    for name, values in (("probabilities", forecast), ("targets", truth)):
        # Written so that a NaN, which compares false with everything, is refused too.
        if not (values.min() >= 0.0 and values.max() <= 1.0 + 1e-6):
            raise ValueError(f"{name} must be finite and within 0 and 1")
    return forecast, truth


def _check_weights(weights: ArrayLike | None, n: int) -> FloatArray:
    if weights is None:
        return np.ones(n)
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n,) or not (checked.min() >= 0.0 and 0.0 < checked.sum() < np.inf):
        raise ValueError(f"{n} weights, finite, none negative and not all zero")
    return checked


def _mean(values: FloatArray, weights: ArrayLike | None) -> float:
    weight = _check_weights(weights, values.size)
    return float(values @ weight / weight.sum())
