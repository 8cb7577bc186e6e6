"""An evaluation that succeeded, with everything that is told about it."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.wire.evaluations import Evaluation, EvaluationDetail


@dataclass(frozen=True, slots=True)
class Scored:
    """An evaluation that succeeded, with what was measured.

    Parameters
    ----------
    evaluation : Evaluation
    detail : EvaluationDetail
    dataset_name : str
        Its id where it was deleted.
    others : list of Evaluation
        Others of its dataset that succeeded.
    """

    evaluation: Evaluation
    detail: EvaluationDetail
    dataset_name: str
    others: list[Evaluation]
