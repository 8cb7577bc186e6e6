"""An evaluation that succeeded, with everything that is shown about it."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.evaluations.wire import Evaluation, EvaluationDetail
from steelyard.review.duties_wire import PeopleAgreement
from steelyard.wire.measures import Measure


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
