"""Regression of each outcome's reward: ridge, on what contexts read as."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.linear_model import Ridge

from steelyard.families.trainer.linear import LinearFit

Floats = NDArray[np.float32]


def fit_ridge(features: Any, rewards: Floats, penalty: float) -> LinearFit:
    """Fit the rewards, of shape (n, n_outcomes), by penalised least squares."""
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
