"""The evidence in logits of pairs for a decision; pure.

A yes/no is asked as a statement and its negation. A context that entails the one or contradicts the
other is evidence for yes; the other way round, for no. An encoder's leaning, whatever the text says, is
in both and cancels in their difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.entailment.folder import EncoderFacts

Logits = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class YesNo:
    """The evidence for yes less that for no, and how likely it is that the text says neither."""

    evidence: float
    #: ``None`` of an encoder with two logits, which does not know.
    unstated: float | None


def weigh_yes_no(
    facts: EncoderFacts,
    statement: Sequence[Logits],
    negation: Sequence[Logits] | None,
    temperature: float,
) -> YesNo:
    """Return the answer that a statement and its negation give over the parts of a text.

    The strongest evidence on each side counts, wherever in the text it is. Without a negation the
    statement counts for both.
    """
    stated = np.stack(statement)
    if negation is None:
        swapped = list(range(facts.n_labels))
        swapped[facts.entails], swapped[facts.contradicts] = facts.contradicts, facts.entails
        negated = stated[:, swapped]
    else:
        negated = np.stack(negation)
    entails, contradicts = facts.entails, facts.contradicts
    if facts.neutral is None:
        odds = [(rows[:, entails] - rows[:, contradicts]).max() for rows in (stated, negated)]
        return YesNo(float(odds[0] - odds[1]) / 2 / temperature + facts.manifest.bias, None)
    # Against "not said", so that parts of a text which say nothing of it do not count.
    stated = stated - stated[:, [facts.neutral]]
    negated = negated - negated[:, [facts.neutral]]
    for_yes = float((stated[:, entails] + negated[:, contradicts]).max()) / 2 / temperature
    for_no = float((stated[:, contradicts] + negated[:, entails]).max()) / 2 / temperature
    unstated = float(np.exp(-np.logaddexp.reduce([for_yes, for_no, 0.0])))
    return YesNo(for_yes - for_no + facts.manifest.bias, unstated)


def weigh_outcome(facts: EncoderFacts, statement: Sequence[Logits], temperature: float) -> float:
    """Return the log odds that a text gives an outcome's statement, the largest over its parts."""
    rows = np.stack(statement)
    others = np.delete(rows, facts.entails, axis=1)
    odds = rows[:, facts.entails] - np.logaddexp.reduce(others, axis=1)
    return float(odds.max()) / temperature
