"""The names of events that webhooks may be sent."""

from __future__ import annotations

from typing import Literal, get_args

Event = Literal[
    "job.succeeded",
    "job.failed",
    "gate.passed",
    "gate.failed",
    "family.moved",
    "family.switched_off",
    "family.rolled_back",
    "evaluation.succeeded",
    "labeling.review_ready",
    "decision.moved",
    "decision.share_ended",
    "decision.grown",
    "alarm.raised",
    "alarm.cleared",
    "balance.low",
    "purchase.paid",
]
EVENTS: tuple[Event, ...] = get_args(Event)
#: What a webhook is sent on request, whatever events it wants.
TEST = "webhook.test"
