"""Multinomial logistic regression with soft targets, offsets of learned scale, and warm starts.

Scikit-learn's takes neither soft targets nor offsets, which is why the objective is ours; the
optimiser is SciPy's L-BFGS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse

Floats = NDArray[np.float32]

#: Penalty on what an outcome starts with: lightly towards all equal.
_BIAS_PENALTY = 0.05
#: Penalty on how far the scale of an offset moves.
SCALE_PENALTY = 0.05
#: Steps that the optimiser remembers.
_MEMORY = 4
#: Change of the mean loss, relative to itself, at which it stops.
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A fitted model."""

    weights: Floats  # (n_features, n_outcomes)
    bias: Floats  # (n_outcomes,)
    scales: Floats  # of each offset

    def logits(self, features: Any, offsets: Sequence[Floats] = ()) -> Floats:
        """Return logits, of shape (n, n_outcomes)."""
        logits: Floats = np.asarray(features @ self.weights, np.float32) + self.bias
        for scale, offset in zip(self.scales, offsets, strict=True):
            logits += scale * offset
        return logits


def fit_linear(
    features: Any,
    targets: Floats,
    penalty: float,
    *,
    offsets: Sequence[Floats] = (),
    first_scales: Sequence[float] = (),
    start: LinearFit | None = None,
    most_steps: int = 60,
    bias_penalty: float = _BIAS_PENALTY,
    scale_penalty: float = SCALE_PENALTY,
) -> LinearFit:
    """Fit by penalised likelihood to targets, (n, n_outcomes), with ``offsets`` times learned scales."""
    n, n_features = features.shape
    n_outcomes = targets.shape[1]
    n_weights = n_features * n_outcomes
    first = np.array(first_scales, np.float32)
    if start is None:
        start = LinearFit(
            np.zeros((n_features, n_outcomes), np.float32), np.zeros(n_outcomes, np.float32), first
        )
    flat = np.concatenate([start.weights.ravel(), start.bias, start.scales]).astype(np.float64)
    transposed = features.T

    def unpack(values: NDArray[np.float64]) -> LinearFit:
        numbers = values.astype(np.float32)
        return LinearFit(
            numbers[:n_weights].reshape(n_features, n_outcomes),
            numbers[n_weights : n_weights + n_outcomes],
            numbers[n_weights + n_outcomes :],
        )

    def objective(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        fit = unpack(values)
        logits = fit.logits(features, offsets)
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(axis=1, keepdims=True)
        drift = fit.scales - first
        loss = float(np.log(sums).sum(dtype=np.float64)) - float(
            np.einsum("ij,ij->", logits, targets, dtype=np.float64)
        )
        loss += 0.5 * penalty * float(np.vdot(fit.weights, fit.weights))
        loss += 0.5 * bias_penalty * float(np.vdot(fit.bias, fit.bias))
        loss += 0.5 * scale_penalty * float(np.vdot(drift, drift))
        shares /= sums
        shares -= targets
        slope = np.empty_like(values)
        slope[:n_weights] = (transposed @ shares + penalty * fit.weights).ravel()
        slope[n_weights : n_weights + n_outcomes] = shares.sum(axis=0) + bias_penalty * fit.bias
        for i, offset in enumerate(offsets):
            at = n_weights + n_outcomes + i
            slope[at] = np.einsum("ij,ij->", shares, offset) + scale_penalty * drift[i]
        slope /= n
        return loss / n, slope

    options = {"maxiter": most_steps, "maxcor": _MEMORY, "ftol": _TOLERANCE, "gtol": 1e-6}
    solution = minimize(objective, flat, jac=True, method="L-BFGS-B", options=options)
    return unpack(solution.x)


def fit_ridge(features: Any, rewards: Floats, penalty: float) -> LinearFit:
    """Fit the rewards, of shape (n, n_outcomes), by penalised least squares."""
    from sklearn.linear_model import Ridge  # noqa: PLC0415  # a second, which targets need not wait

    solver = "sparse_cg" if issparse(features) else "cholesky"
    model = Ridge(alpha=penalty, solver=solver, tol=1e-4)
    # Least squares of sparse columns is solved around the origin: the mean is taken off by hand.
    mean = rewards.mean(axis=0)
    model.set_params(fit_intercept=not issparse(features))
    model.fit(features, rewards - mean)
    weights = np.atleast_2d(np.asarray(model.coef_, np.float32)).T
    bias = mean + np.asarray(model.intercept_, np.float32)
    return LinearFit(
        np.ascontiguousarray(weights), bias.astype(np.float32), np.zeros(0, np.float32)
    )
