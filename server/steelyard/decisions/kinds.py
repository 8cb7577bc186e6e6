"""What a valid decision is once read: its kind, its outcomes and the text a scorer reads of it.

Here: immutable domain types. Not here: checking (``steelyard.decisions.validation``) and choosing
an action (``steelyard.decisions.policy``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.decisions.rendering import RenderedDecision, render_outcome, render_value

if TYPE_CHECKING:
    from steelyard.decisions.policy import Policy
    from steelyard.decisions.wire import Kind

#: The outcomes of every binary decision, in the order of its probabilities.
BINARY_NAMES = ("yes", "no")
#: The action that sends a decision to a person; no outcome and no other action may have its name.
ABSTAIN = "abstain"


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
    #: A yes/no question asked the other way round; empty where nobody gave one.
    opposite: str = ""

    @property
    def n_characters(self) -> int:
        """About how long its question and its outcomes are."""
        outcomes = self.outcomes
        return len(str(self.question)) + sum(
            len(name) + len(str(description))
            for name, description in zip(outcomes.names, outcomes.descriptions, strict=True)
        )


def render_decision(decision: Decision) -> RenderedDecision:
    """Return the text of a decision; its id and its index are no part of it.

    >>> outcomes = Outcomes(("low", "high"), (None, "over 100"))
    >>> render_decision(Decision("a", "ordinal", "How much?", outcomes)).outcomes
    ('low', 'high: over 100')
    """
    named = zip(decision.outcomes.names, decision.outcomes.descriptions, strict=True)
    return RenderedDecision(
        kind=decision.kind,
        question=render_value(decision.question),
        outcomes=tuple(render_outcome(name, description) for name, description in named),
        names=decision.outcomes.names,
        policy=decision.policy,
        opposite=decision.opposite,
    )
