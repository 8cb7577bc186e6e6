"""Several candidates as one: a weighted sum of log probabilities, and a booster that corrects it.

The booster is LightGBM over pairs of a context and an outcome, so that its cost does not grow with
a tree for every outcome. With targets it is boosted on the softmax over each context's outcomes;
with rewards it is a regression of each outcome's reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from steelyard.scoring.head_specs import LEAST_LOG, log_softmax
from steelyard.trainer.crossfit import library_seed

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

#: How firmly weights hold to equal parts: as so many squared units of loss.
_WEIGHT_PENALTY = 2.0
_MOST_WEIGHT = 2.0
#: Outcomes of a context that the booster learns from: the likeliest, and all that are right.
_LEARNED_OUTCOMES = 8
_ROUNDS = 80
_BOOSTER: dict[str, Any] = {
    "num_leaves": 7,
    "learning_rate": 0.06,
    "lambda_l2": 5.0,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


def blend(logs: Sequence[Doubles], weights: Sequence[float]) -> Doubles:
    """Return the log probabilities of a blend, of shape (n, n_outcomes)."""
    total: Doubles = np.zeros_like(logs[0])
    for weight, log in zip(weights, logs, strict=True):
        total += weight * np.maximum(log, LEAST_LOG)
    return log_softmax(total)


def fit_weights(logs: Sequence[Doubles], targets: Floats, rewards: Floats | None) -> list[float]:
    """Fit the weights of a blend: none negative, and near equal where rows are few.

    ``logs`` has every candidate's log probabilities of shape (n, n_outcomes), of rows that it was
    not fitted on. Where there are rewards, the blend is fitted to them by least squares.
    """
    stacked = np.stack([np.maximum(log, LEAST_LOG) for log in logs])
    equal = np.full(len(logs), 1 / len(logs))
    if rewards is not None:
        stacked = stacked - stacked.mean(axis=2, keepdims=True)
        centred = rewards - rewards.mean(axis=1, keepdims=True)

    def objective(weights: Doubles) -> tuple[float, Doubles]:
        total = np.tensordot(weights, stacked, 1)
        drift = weights - equal
        if rewards is not None:
            errors = total - centred
            loss = 0.5 * float(np.vdot(errors, errors))
        else:
            logs_of_blend = log_softmax(total)
            errors = np.exp(logs_of_blend) - targets
            loss = -float(np.vdot(logs_of_blend, targets))
        slope = np.einsum("nk,cnk->c", errors, stacked) + _WEIGHT_PENALTY * drift
        return loss + 0.5 * _WEIGHT_PENALTY * float(drift @ drift), slope

    bounds = [(0.0, None if rewards is not None else _MOST_WEIGHT)] * len(logs)
    solution = minimize(objective, equal, jac=True, method="L-BFGS-B", bounds=bounds)
    return [float(weight) for weight in solution.x]


def fit_booster(
    features: Floats, blended: Doubles, targets: Floats, rewards: Floats | None, seed: int
) -> str:
    """Fit the corrections to a blend's log probabilities, of shape (n, n_outcomes).

    ``features`` has shape (n, n_outcomes, n_features), as ``pair_features`` makes them.
    """
    import lightgbm  # noqa: PLC0415  # half a second of every fine-tune, few of which have rows for it

    n_outcomes = blended.shape[1]
    chosen = targets > 0
    likeliest = np.argsort(-blended, axis=1, kind="stable")[:, :_LEARNED_OUTCOMES]
    np.put_along_axis(chosen, likeliest, values=True, axis=1)
    if rewards is not None and n_outcomes <= 2 * _LEARNED_OUTCOMES:
        chosen[:] = True
    rows, outcomes = np.nonzero(chosen)
    offset, expected = blended[rows, outcomes], targets[rows, outcomes].astype(np.float64)
    starts = np.searchsorted(rows, np.arange(len(blended)))
    # The total weight of the outcomes that are left out; it does not change.
    left_out = np.where(chosen, 0.0, np.exp(blended)).sum(axis=1)
    parameters = {
        **_BOOSTER,
        "min_data_in_leaf": max(20, len(rows) // 500),
        "seed": library_seed(seed),
    }

    def of_softmax(predicted: Doubles, _: Any) -> tuple[Doubles, Doubles]:
        weights = np.exp(offset + predicted)
        sums = np.add.reduceat(weights, starts) + left_out
        shares = weights / sums[rows]
        return shares - expected, np.maximum(shares * (1 - shares), 1e-3)

    if rewards is None:
        parameters["objective"] = of_softmax
        labels = expected
    else:
        parameters |= {"objective": "regression", "boost_from_average": False}
        # Only differences within a row matter: the blend's own level is taken off both.
        centred = blended - blended.mean(axis=1, keepdims=True)
        level = rewards - rewards.mean(axis=1, keepdims=True)
        labels = (level - centred)[rows, outcomes]
    data = lightgbm.Dataset(features[rows, outcomes], label=labels, params={"verbosity": -1})
    booster = lightgbm.train(parameters, data, num_boost_round=_ROUNDS)
    return str(booster.model_to_string())


def correct(booster: str, features: Floats, blended: Doubles) -> Doubles:
    """Return a blend's log probabilities as a booster corrects them."""
    import lightgbm  # noqa: PLC0415

    flat = features.reshape(-1, features.shape[-1])
    model = lightgbm.Booster(model_str=booster)
    corrected: Doubles = blended + np.asarray(model.predict(flat)).reshape(blended.shape)
    return log_softmax(corrected)
