"""Convert stored answers, feedback and predictions of evaluations to values that alarms test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from steelyard.alarms.tracking import ABSTAINED, GAP, LOSS, OUTCOME, P_TOP, RIGHT
from steelyard.decision_log.traffic import is_right
from steelyard.decisions.wire import ABSTAIN
from steelyard.wire.decoding import decoder_of

#: The log loss, in nats, that counts as 1.
MOST_LOSS = 5.0


class Result(Struct):
    """The fields of a stored result that alarms read."""

    probabilities: dict[str, float]
    top: str
    p_top: float
    action: str
    route: list[Any] = []


read_results = decoder_of(dict[str, Result]).decode


def answer_values(result: Result) -> dict[str, float]:
    """Return the values of a decision that need no known outcome."""
    is_abstained = result.action == ABSTAIN != result.top
    return {OUTCOME + result.top: 1.0, ABSTAINED: float(is_abstained), P_TOP: result.p_top}


def feedback_values(result: Result, outcome: str | Mapping[str, float]) -> dict[str, float]:
    """Return the values of a decision whose outcome is known."""
    targets = {outcome: 1.0} if isinstance(outcome, str) else outcome
    right = float(is_right(result.top, outcome))
    return _known(result.p_top, right, result.probabilities, targets)


def is_escalated(results: Mapping[str, Result]) -> bool:
    """Whether a route asked more than its first model."""
    return any(len(result.route) > 1 for result in results.values())


def predicted_values(
    outcomes: Sequence[str],
    probabilities: Sequence[float],
    labels: Sequence[float],
    *,
    has_targets: bool,
) -> tuple[dict[str, float], dict[str, float] | None]:
    """Return a prediction's values without its target, and with it where there is one."""
    place = max(range(len(outcomes)), key=lambda index: probabilities[index])
    p_top = probabilities[place]
    alone = {OUTCOME + outcomes[place]: 1.0, P_TOP: p_top}
    if not has_targets:
        return alone, None
    targets = dict(zip(outcomes, labels, strict=True))
    right = float(is_right(outcomes[place], targets))
    return alone, _known(p_top, right, dict(zip(outcomes, probabilities, strict=True)), targets)


def _known(
    p_top: float, right: float, probabilities: Mapping[str, float], targets: Mapping[str, float]
) -> dict[str, float]:
    loss = -math.fsum(
        target * math.log(max(probabilities.get(name, 0.0), 1e-6))
        for name, target in targets.items()
        if target > 0
    )
    return {
        RIGHT: right,
        LOSS: min(max(loss, 0.0) / MOST_LOSS, 1.0),
        GAP: (p_top - right + 1) / 2,
    }
