"""The base's logits corrected by its marker vectors: a refit of the last layer, shrunk to the base.

The logit of outcome k on row i is ``sharpness * base[i, k] + (marker[i, k] - centre) . (shared +
own[k]) + bias[k]``. With a large penalty the corrections vanish and the base is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float32]

#: An outcome's own correction is held back this much more than the shared one.
_OWN_PENALTY = 4.0
_BIAS_PENALTY = 1.0
_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class MarkerFit:
    """A fitted correction."""

    sharpness: float
    centre: Floats  # (width,)
    shared: Floats  # (width,)
    own: Floats  # (n_outcomes, width)
    bias: Floats  # (n_outcomes,)

    def logits(self, markers: Floats, base: Floats) -> Floats:
        """Return logits, of shape (n, n_outcomes)."""
        corrected = np.einsum("nkw,kw->nk", markers - self.centre, self.shared + self.own)
        logits: Floats = self.sharpness * base + corrected + self.bias
        return logits


def fit_markers(
    markers: Floats,
    base: Floats,
    targets: Floats,
    penalty: float,
    *,
    start: MarkerFit | None = None,
) -> MarkerFit:
    """Fit by penalised likelihood.

    ``markers`` has shape (n, n_outcomes, width); the base's logits and the targets (n, n_outcomes).
    """
    n, n_outcomes, width = markers.shape
    centre = markers.mean(axis=(0, 1))
    centred = markers - centre
    spread = float(np.sqrt((centred**2).sum(axis=2).mean())) or 1.0
    centred = centred / np.float32(spread)
    n_own = n_outcomes * width
    edges = np.cumsum([1, width, n_own, n_outcomes])
    flat = np.zeros(edges[-1])
    flat[0] = 1.0
    if start is not None:
        own = start.own.ravel() * spread
        flat = np.concatenate([[start.sharpness], start.shared * spread, own, start.bias])

    def objective(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        sharpness, shared, own, bias = np.split(values.astype(np.float32), edges[:-1])
        own = own.reshape(n_outcomes, width)
        logits = np.einsum("nkw,kw->nk", centred, shared + own) + sharpness[0] * base + bias
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(axis=1, keepdims=True)
        loss = float(np.log(sums).sum() - (logits * targets).sum())
        errors = shares / sums - targets
        slope_own = np.einsum("nk,nkw->kw", errors, centred)
        slope = np.concatenate(
            [
                [(errors * base).sum() + _BIAS_PENALTY * (sharpness[0] - 1)],
                slope_own.sum(axis=0) + penalty * shared,
                (slope_own + _OWN_PENALTY * penalty * own).ravel(),
                errors.sum(axis=0) + _BIAS_PENALTY * bias,
            ]
        )
        loss += 0.5 * penalty * float(shared @ shared + _OWN_PENALTY * (own**2).sum())
        loss += 0.5 * _BIAS_PENALTY * float(bias @ bias + (sharpness[0] - 1) ** 2)
        return loss / n, slope.astype(np.float64) / n

    options = {"maxiter": _STEPS, "maxcor": 6, "ftol": 1e-6, "gtol": 1e-6}
    solution = minimize(objective, flat, jac=True, method="L-BFGS-B", options=options)
    sharpness, shared, own, bias = np.split(solution.x.astype(np.float32), edges[:-1])
    return MarkerFit(
        float(sharpness[0]),
        centre,
        np.asarray(shared / spread, np.float32),
        np.asarray(own.reshape(n_outcomes, width) / spread, np.float32),
        bias,
    )
