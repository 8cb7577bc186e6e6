"""An evaluation that succeeded, with everything that is shown about it."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from steelyard.evaluations.wire import Evaluation, EvaluationDetail, EvaluationRecord
from steelyard.review.duties_wire import PeopleAgreement
from steelyard.wire.measures import Measure
from steelyard_workbench.parts.datasets.questions import as_text


@dataclass(frozen=True, slots=True)
class Scored:
    """An evaluation that succeeded, with its measures."""

    evaluation: Evaluation
    detail: EvaluationDetail
    dataset_name: str
    others: list[Evaluation]
    #: How far people agree on the rows of its version, where that is known.
    people: PeopleAgreement | None = None

    @property
    def ceiling(self) -> Measure | None:
        """The share of answers in which people agree, beside the accuracy where there is one."""
        has_accuracy = isinstance(self.detail.overall.accuracy, Measure)
        return self.people.agreement if self.people is not None and has_accuracy else None


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
