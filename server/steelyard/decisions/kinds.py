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
    from steelyard.wire.decide import Kind

#: The outcomes of every binary decision, in the order of its probabilities.
BINARY_NAMES = ("yes", "no")
#: The action that sends a decision to a person; no outcome and no other action may have its name.
ABSTAIN = "abstain"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes that a caller allows, in order.

    Parameters
    ----------
    names : tuple of str
        2 to 255 names, distinct and not blank.
    descriptions : tuple
        One per name: any JSON value, ``None`` for none.
    """

    names: tuple[str, ...]
    descriptions: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One valid decision.

    Parameters
    ----------
    id : str
        Unique in its request.
    kind : {"single", "binary", "ordinal"}
        How its outcomes relate.
    question : str, dict or list
        A text, or any JSON object or array.
    outcomes : Outcomes
        What may be answered.
    policy : Policy, optional
        How to choose the action; the top outcome when left out.
    index : int
        Its place in the request, from 0.
    """

    id: str
    kind: Kind
    question: Any
    outcomes: Outcomes
    policy: Policy | None = None
    index: int = field(default=0, compare=False)


def render_decision(decision: Decision) -> RenderedDecision:
    """Give the text of a decision: its id, its index and its policy are no part of it.

    Examples
    --------
    >>> outcomes = Outcomes(("low", "high"), (None, "over 100"))
    >>> render_decision(Decision("a", "ordinal", "How much?", outcomes)).outcomes
    ('low', 'high: over 100')
    """
    named = zip(decision.outcomes.names, decision.outcomes.descriptions, strict=True)
    return RenderedDecision(
        kind=decision.kind,
        question=render_value(decision.question),
        outcomes=tuple(render_outcome(name, description) for name, description in named),
    )
