"""Scored decisions as a person reads them."""

from __future__ import annotations

from msgspec import UNSET

from steelyard.evaluations.wire import EvaluationRecord
from steelyard_workbench.parts.datasets.questions import as_text


def right_outcomes(record: EvaluationRecord) -> list[str]:
    """Return the outcomes with the largest target or reward; one with targets."""
    if isinstance(record.targets, dict):
        return [max(record.targets, key=record.targets.__getitem__)]
    rewards = record.rewards if isinstance(record.rewards, dict) else {}
    best = max(rewards.values(), default=0.0)
    return [name for name, reward in rewards.items() if reward == best]


def context_text(record: EvaluationRecord) -> str:
    """Return the context of a record; JSON when it is no text."""
    if record.context is UNSET:
        return "(not here any more)"
    return as_text(record.context)
