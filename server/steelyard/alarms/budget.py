"""Metrics watched for a model, and how the chance of a false alarm is divided among them."""

from __future__ import annotations

import math
from typing import Literal, get_args

Watch = Literal[
    "shares",
    "top_probability",
    "accuracy",
    "log_loss",
    "calibration",
    "contexts",
    "latency",
    "errors",
    "escalations",
]
#: Of golden rows, which are asked on a clock.
GoldenWatch = Literal["golden", "golden_stale"]
WATCHES: tuple[Watch, ...] = get_args(Watch)

#: The chance that a run of ``sequences.RUN`` decisions of a model that did not change raises an alarm.
FALSE_ALARMS = 0.01
#: The part of it that each watch has; most where drift is to be found soonest.
_PARTS: dict[Watch, float] = {
    "shares": 0.8,
    "top_probability": 0.05,
    "accuracy": 0.04,
    "log_loss": 0.015,
    "calibration": 0.015,
    "contexts": 0.04,
    "latency": 0.015,
    "errors": 0.015,
    "escalations": 0.01,
}


def alpha(watch: Watch, *, decisions: int = 1, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the chance of a false alarm that a watch has; each of a model's decisions has its part.

    >>> round(sum(alpha(watch) for watch in WATCHES), 12)
    0.01
    """
    return _PARTS[watch] * false_alarms / max(decisions, 1)


def threshold(watch: Watch, *, decisions: int = 1, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the log of the evidence from which a watch raises its alarm."""
    return -math.log(alpha(watch, decisions=decisions, false_alarms=false_alarms))
