"""An evaluation that succeeded, with everything that is shown about it."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.evaluations.wire import Evaluation, EvaluationDetail


@dataclass(frozen=True, slots=True)
class Scored:
    """An evaluation that succeeded, with its measures."""

    evaluation: Evaluation
    detail: EvaluationDetail
    dataset_name: str
    others: list[Evaluation]
