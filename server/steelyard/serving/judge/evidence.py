"""A judge's evidence on a decision, and removing its biases without labels.

A language model leans to a letter, to a name, to yes or to no, whatever the text says. Its answers
about texts that say nothing show how far (contextual calibration, Zhao and others, 2021). A yes/no
question and its opposite show it better still: their answers have the leaning in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.scoring.protocol import Thought
from steelyard.serving.connected.answers import Probabilities, normalized

#: Texts that say nothing.
NEUTRAL_CONTEXTS = ("N/A", "The text is missing.")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Log probabilities of a decision's outcomes, in order, each a mean over orders of the outcomes."""

    context: Probabilities
    #: About texts that say nothing; ``None`` where they were not asked.
    neutral: Probabilities | None = None
    #: To the question asked the other way round, with yes and no in their places there.
    opposite: Probabilities | None = None
    #: Whether the judge wrote the opposite itself.
    is_own_opposite: bool = False
    #: Probability of the next token on the labels together, a mean over orders.
    mass: float = 1.0
    #: See ``ScoredDecision``.
    thought: Thought | None = None
    cpu_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The probabilities of a decision's outcomes, and the corrections made."""

    probabilities: Probabilities
    calibration: str = ""
    mass: float | None = None
    thought: Thought | None = None
    cpu_ms: float | None = None


def judge(evidence: Evidence) -> Judgement:
    """Return the judgement of evidence.

    >>> yes_to_both = np.log([0.9, 0.1])
    >>> judge(Evidence(yes_to_both, opposite=yes_to_both)).probabilities.round(2).tolist()
    [0.5, 0.5]
    """
    logits, calibration = evidence.context, ""
    if evidence.opposite is not None:
        # An answer to the opposite is one to the question with yes and no exchanged. Both are readings
        # of the text, whose evidence adds up; what leans to yes in both leaves no trace.
        logits = evidence.context + evidence.opposite[::-1]
        calibration = "own_opposite" if evidence.is_own_opposite else "opposite"
    elif evidence.neutral is not None:
        logits, calibration = evidence.context - evidence.neutral, "contextual"
    probabilities = normalized(np.exp(logits - logits.max()))
    return Judgement(probabilities, calibration, evidence.mass, evidence.thought, evidence.cpu_ms)
