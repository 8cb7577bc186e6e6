"""From the probabilities of a decision to its answer on the wire."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import UNSET

from steelyard.decisions.kinds import Decision
from steelyard.decisions.policy import choose_action
from steelyard.decisions.wire import DecisionResult, PolicyResult


def answer_decision(decision: Decision, probabilities: Sequence[float]) -> DecisionResult:
    """Return the answer to a decision.

    ``top`` is the first outcome with the largest probability, ``expected_level`` (ordinal alone) the
    mean place from 0, and ``action`` the policy's, or ``top`` without one.
    """
    names = decision.outcomes.names
    p_top = max(probabilities)
    top = names[probabilities.index(p_top)]
    action, policy = top, None
    if decision.policy is not None:
        choice = choose_action(decision.policy, names, probabilities)
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
    )
