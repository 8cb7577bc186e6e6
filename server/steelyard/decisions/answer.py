"""From the probabilities of a decision to its answer on the wire.

The caller's temperature comes first: sharper below 1, softer above, on top of the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import UNSET
from numpy.typing import ArrayLike, NDArray

from steelyard.decisions.kinds import Decision
from steelyard.decisions.policy import choose_action
from steelyard.decisions.wire import MAX_TEMPERATURE, MIN_TEMPERATURE, DecisionResult, PolicyResult


def answer_decision(
    decision: Decision, probabilities: Sequence[float], unstated: float | None = None
) -> DecisionResult:
    """Return the answer to a decision.

    ``top`` is the first outcome with the largest probability, ``expected_level`` (ordinal alone) the
    mean place from 0, and ``action`` the policy's, or ``top`` without one. ``unstated`` is the
    probability that the context does not say, where the model knows.
    """
    names = decision.outcomes.names
    p_top = max(probabilities)
    top = names[probabilities.index(p_top)]
    action, policy = top, None
    if decision.policy is not None:
        choice = choose_action(decision.policy, names, probabilities, unstated)
        action = choice.action
        costs = UNSET if choice.expected_costs is None else choice.expected_costs
        policy = PolicyResult(action=action, expected_costs=costs)
    expected_level = math.fsum(level * share for level, share in enumerate(probabilities))
    return DecisionResult(
        kind=decision.kind,
        probabilities=dict(zip(names, probabilities, strict=True)),
        top=top,
        p_top=p_top,
        action=action,
        expected_level=expected_level if decision.kind == "ordinal" else UNSET,
        policy=UNSET if policy is None else policy,
        unstated=UNSET if unstated is None else unstated,
    )


def temper_log_probabilities(
    log_probabilities: ArrayLike, temperature: float
) -> NDArray[np.float64]:
    """Return probabilities to the power ``1 / temperature``, normalised, from their logarithms.

    At least one is above minus infinity. They sum to 1 within 1e-12, and the largest stays the largest.
    Starting from logarithms keeps apart probabilities too small to differ from 0.
    """
    if not MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE:
        raise ValueError(
            f"The temperature is {temperature!r}; give {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}."
        )
    scaled = np.asarray(log_probabilities, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    probabilities: NDArray[np.float64] = weights / weights.sum()
    return probabilities
