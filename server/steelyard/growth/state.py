"""How far a growth is; pure."""

from __future__ import annotations

from msgspec import Struct

from steelyard.decisions.named import MODEL_PREFIX
from steelyard.growth.wire import GrowthComparison, GrowthStage, GrowthStep, LearningEstimate

#: Steps that a growth lists, the newest ones.
MOST_STEPS = 50


class GrowthCandidate(Struct):
    """A model of the family on its way to production."""

    ref: str
    version: int
    before: int
    since: float
    comparison_id: str | None = None
    outcome: GrowthStage | None = None


class GrowthState(Struct):
    """How far a growth is."""

    stage: GrowthStage = "gathering"
    waits_for: str = "Its first look, within five minutes."
    estimate: LearningEstimate | None = None
    comparison: GrowthComparison | None = None
    candidate: GrowthCandidate | None = None
    n_comparisons: int = 0
    steps: list[GrowthStep] = []
    n_steps: int = 0


def subject_of(name: str) -> str:
    """Return the shadow subject of a named decision."""
    return f"{MODEL_PREFIX}{name}"
