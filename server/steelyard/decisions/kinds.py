"""A valid decision: its kind and its outcomes.

Here: immutable domain types. Not here: checking (``steelyard.decisions.validation``) and choosing
an action (``steelyard.decisions.policy``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.decisions.policy import Policy
    from steelyard.decisions.wire import Kind

#: The outcomes of every binary decision, in the order of its probabilities.
BINARY_NAMES = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes that a caller allows, in order."""

    names: tuple[str, ...]
    descriptions: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One valid decision."""

    id: str
    kind: Kind
    question: Any
    outcomes: Outcomes
    policy: Policy | None = None
    index: int = field(default=0, compare=False)
    #: A yes/no question asked the other way round; empty without one.
    opposite: str = ""
    #: What *yes* to a question states; empty where the caller gave none.
    statement: str = ""
    #: What reviewers and judges go by; the question is the same with any.
    guideline: str = field(default="", compare=False)


def without_guidelines(decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Return decisions as models read them that take no guideline."""
    return tuple(replace(decision, guideline="") for decision in decisions)
