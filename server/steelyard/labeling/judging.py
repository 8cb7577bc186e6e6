"""Teachers' answers to a row, and the targets made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

#: ``votes``: each teacher's label counts one. ``probabilities``: those of calibrated teachers count.
Weighting = Literal["votes", "probabilities"]
#: Decision to outcome to probability.
Targets = dict[str, dict[str, float]]


class Judgment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One teacher's answer to a row: probabilities of every outcome by decision, or the reason without one."""

    probabilities: Targets | None = None
    is_calibrated: bool = False
    error: str | None = None

    @property
    def labels(self) -> dict[str, str]:
        """The likeliest outcome of each decision, the first of equals."""
        return {
            decision: max(probabilities, key=probabilities.__getitem__)
            for decision, probabilities in (self.probabilities or {}).items()
        }


class LabelVerdict(Struct, frozen=True, kw_only=True):
    """The result of a row's judgments together.

    A row is valid when a teacher labelled its decisions, and has agreement when every teacher gave
    every decision the same label.
    """

    is_valid: bool
    has_agreement: bool
    targets: Targets


def verdict_of(judgments: Sequence[Judgment], weighting: Weighting) -> LabelVerdict:
    """Return the verdict of the judgments of a row.

    Weighted by probabilities, a teacher without a calibration counts as a vote for its label.
    """
    answered = [judgment for judgment in judgments if judgment.probabilities]
    if not answered:
        return LabelVerdict(is_valid=False, has_agreement=False, targets={})
    targets = {
        decision: _mean([_parts(judgment, decision, weighting) for judgment in answered])
        for decision in answered[0].probabilities or {}
    }
    labels = [judgment.labels for judgment in answered]
    agrees = len(answered) == len(judgments) and all(label == labels[0] for label in labels)
    return LabelVerdict(is_valid=True, has_agreement=agrees, targets=targets)


def _parts(judgment: Judgment, decision: str, weighting: Weighting) -> dict[str, float]:
    probabilities = (judgment.probabilities or {})[decision]
    if weighting == "probabilities" and judgment.is_calibrated:
        return probabilities
    chosen = judgment.labels[decision]
    return {name: float(name == chosen) for name in probabilities}


def _mean(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of distributions over the same outcomes, without those of 0."""
    sums = {name: math.fsum(part[name] for part in parts) for name in parts[0]}
    total = math.fsum(sums.values())
    return {name: value / total for name, value in sums.items() if value > 0}
