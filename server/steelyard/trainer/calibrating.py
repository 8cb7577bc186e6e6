"""Calibration of a head, on predictions of rows that it was not fitted on.

A temperature always; then the beta curve or the isotonic one, through which every outcome's
probability goes before they are normalised again, only where it lowers the loss on rows that the
curve was not fitted on either.

References
----------
Guo et al., "On Calibration of Modern Neural Networks", ICML 2017. Kull, Silva Filho and Flach,
"Beta calibration", AISTATS 2017. Zadrozny and Elkan, "Transforming Classifier Scores into Accurate
Multiclass Probability Estimates", KDD 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from steelyard.scoring.head_specs import Calibration, calibrate, log_softmax
from steelyard.trainer.crossfit import Indices

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_LEAST, _MOST = np.log(0.05), np.log(20.0)
#: How firmly a temperature holds to 1: a factor of e costs half of this in nats.
_NEARNESS = 4.0
#: Rows, at least, for a curve.
_CURVE_ROWS, _ISOTONIC_ROWS = 200, 1_000
#: Corners of an isotonic curve, at most.
_CORNERS = 64


@dataclass(frozen=True, slots=True)
class CalibrationChoice:
    """A calibration and the losses it was chosen by."""

    calibration: Calibration
    losses: Doubles  # of every row, in nats, by a calibration that did not see it


def row_losses(logs: Doubles, targets: Floats) -> Doubles:
    """Return each row's cross-entropy in nats, of log probabilities of shape (n, n_outcomes)."""
    losses: Doubles = -(np.maximum(logs, np.log(1e-6)) * targets).sum(axis=1, dtype=np.float64)
    return losses


def fit_temperature(logs: Doubles, targets: Floats) -> Calibration:
    """Fit a temperature, held near 1 where rows are few."""

    def loss(log_temperature: float) -> float:
        cooled = log_softmax(logs / np.exp(log_temperature))
        return float(-(cooled * targets).sum() + 0.5 * _NEARNESS * log_temperature**2)

    solution = minimize_scalar(
        loss, bounds=(_LEAST, _MOST), method="bounded", options={"xatol": 1e-3}
    )
    return Calibration(temperature=float(np.exp(solution.x)))


def fit_beta(logs: Doubles, targets: Floats) -> Calibration:
    """Fit a temperature, then the beta curve."""
    first = fit_temperature(logs, targets)
    tempered = np.clip(calibrate(logs, [first]), -40.0, -1e-9)
    rest = np.log(-np.expm1(tempered))

    def objective(values: Doubles) -> tuple[float, Doubles]:
        a, b, c = values
        odds = a * tempered - b * rest + c
        loss = np.logaddexp(0, odds) - targets * odds
        errors = 1 / (1 + np.exp(-odds)) - targets
        slope = np.array([np.vdot(errors, tempered), -np.vdot(errors, rest), errors.sum()])
        return float(loss.sum()) / len(logs), slope / len(logs)

    first_values, bounds = np.array([1.0, 1.0, 0.0]), [(0.05, 5.0), (0.0, 5.0), (-5.0, 5.0)]
    solution = minimize(
        objective, first_values, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30}
    )
    a, b, c = map(float, solution.x)
    return Calibration(temperature=first.temperature, curve="beta", a=a, b=b, c=c)


def fit_isotonic(logs: Doubles, targets: Floats) -> Calibration:
    """Fit a temperature, then the isotonic curve."""
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415  # a second, for 1,000 rows alone

    first = fit_temperature(logs, targets)
    p = np.exp(calibrate(logs, [first]))
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(p.ravel(), targets.ravel())
    x, y = model.X_thresholds_, model.y_thresholds_
    if len(x) > _CORNERS:
        corners = np.unique(np.linspace(0, len(x) - 1, _CORNERS).round().astype(int))
        x, y = x[corners], y[corners]
    return Calibration(temperature=first.temperature, curve="isotonic", x=x.tolist(), y=y.tolist())


def cross_fitted(
    fit: Callable[[Doubles, Floats], Calibration], logs: Doubles, targets: Floats, folds: Indices
) -> Doubles:
    """Return every row's loss by a calibration fitted on the other folds' rows."""
    losses = np.zeros(len(logs))
    names = np.unique(folds)
    if len(names) < 2:
        return row_losses(calibrate(logs, [Calibration(temperature=1.0)]), targets)
    for fold in names:
        inside = folds == fold
        step = fit(logs[~inside], targets[~inside])
        losses[inside] = row_losses(calibrate(logs[inside], [step]), targets[inside])
    return losses


def choose_calibration(logs: Doubles, targets: Floats, folds: Indices) -> CalibrationChoice:
    """Choose between the temperature alone and the curves.

    ``logs`` and ``targets`` have shape (n, n_outcomes), each row's log probabilities by a head that
    was not fitted on it; contexts of one fold are left out together.
    """
    chosen = fit_temperature
    best = cross_fitted(fit_temperature, logs, targets, folds)
    others = [(fit_beta, _CURVE_ROWS), (fit_isotonic, _ISOTONIC_ROWS)]
    for fit, least_rows in others:
        if len(logs) < least_rows:
            continue
        losses = cross_fitted(fit, logs, targets, folds)
        if is_better(losses, best):
            chosen, best = fit, losses
    return CalibrationChoice(chosen(logs, targets), best)


def is_better(losses: Doubles, than: Doubles) -> bool:
    """Return whether losses are lower by more than the standard error of their mean difference."""
    difference = losses - than
    error = float(difference.std()) / np.sqrt(max(len(difference) - 1, 1))
    return float(difference.mean()) < -error
