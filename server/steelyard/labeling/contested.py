"""Which labelled rows people should look at first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import UNSET

from steelyard.labeling.wire import LabelingResult


def most_contested(results: Sequence[LabelingResult], share: float) -> list[int]:
    """Return the indices of a share of the rows that have labels, the most contested first.

    A row is as contested as its least sure decision: by the highest probability in the mean of the
    teachers' answers.
    """
    valid = sorted((result for result in results if result.valid), key=_certainty)
    return [result.index for result in valid[: math.ceil(share * len(valid))]]


def _certainty(result: LabelingResult) -> float:
    answers = [
        teacher.probabilities for teacher in result.teachers if teacher.probabilities is not UNSET
    ]
    means = (
        max(
            math.fsum(answer[decision][name] for answer in answers) for name in answers[0][decision]
        )
        / len(answers)
        for decision in answers[0]
    )
    return min(means, default=0.0)
