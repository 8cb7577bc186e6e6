"""The training examples of a network, from any source: decisions with their targets."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.decisions.rendering import RenderedDecision


@dataclass(slots=True)
class WordedDecision:
    """A worded decision with its targets."""

    decision: RenderedDecision
    targets: tuple[float, ...]
    #: How much of the target is the teacher's answer instead, if there is a teacher: 0 to 1.
    teacher_share: float = 0.0
