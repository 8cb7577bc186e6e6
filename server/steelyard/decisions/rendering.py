"""The text that the scorer reads: a request's texts, in one form for training and serving.

Here: the rendered form of a context, of questions and of outcomes. Not here: tokens and positions
(``steelyard.scoring.packing``), validation (``steelyard.decisions.validation``).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.decisions.kinds import Decision
    from steelyard.decisions.policy import Policy

#: What an empty context is read as.
NO_CONTEXT = "no context"

#: A name that is one word, as programs write them, and the text after it.
_IDENTIFIER = re.compile(r"([^\W_]\S*?)(?=: |$)(.*)", re.DOTALL)
#: Between the words of such a name. A first word of one small letter is none: iPhone, McKay.
_SEAM = re.compile(
    r"(?<=[a-z]{2})(?=[A-Z])|(?<=[a-z][A-Z][a-z])(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])"
    r"|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[^\W_])_+(?=[^\W_])"
)
#: The letter or number of a listed option.
_LISTED = re.compile(r"\(?([A-Za-z]|\d{1,3})[.)]\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class RenderedDecision:
    """One decision as text."""

    kind: str
    question: str
    outcomes: tuple[str, ...]
    #: The outcomes' names alone; their texts begin with them.
    names: tuple[str, ...] = field(default=(), compare=False)
    #: No part of the text: a route asks the next model where it abstains.
    policy: Policy | None = field(default=None, compare=False)
    #: A yes/no question asked the other way round, which a judge asks too.
    opposite: str = field(default="", compare=False)
    #: What *yes* states, where the caller wrote it.
    statement: str = field(default="", compare=False)
    #: What judges and other connected models go by.
    guideline: str = ""

    @property
    def instructions(self) -> str:
        """The question, and after it the guideline where there is one."""
        return f"{self.question}\nGuideline: {self.guideline}" if self.guideline else self.question


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """One context and the decisions asked on it, as text.

    Computed states of the context are cached for its ``owner``, an account, alone; without one they are
    not kept.
    """

    context: str
    decisions: tuple[RenderedDecision, ...]
    owner: str = ""
    #: How often a text like the held-out ones may be taken for one unlike any trained on; ``None``
    #: where nobody asks how unlike it is.
    false_alarms: float | None = None
    #: By decision, how many models of a route, or steps of a ladder, answer it; empty: as many as it takes.
    n_steps: tuple[int, ...] = field(default=(), compare=False)


def render_value(value: Any) -> str:
    """Return a string as it is and any other JSON value as its JSON text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def render_context(context: Any) -> str:
    """Return the text of a context; a blank one reads ``NO_CONTEXT``."""
    text = render_value(context)
    return text if text.strip() else NO_CONTEXT


def render_outcome(name: str, description: Any = None) -> str:
    """Return the text of an outcome: its name, and its description when it has one."""
    if description is None:
        return name
    text = render_value(description)
    return f"{name}: {text}" if text.strip() else name


def render_decision(decision: Decision) -> RenderedDecision:
    """Return the text of a decision; its id and its index are no part of it.

    >>> from steelyard.decisions.kinds import Decision, Outcomes
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
        statement=decision.statement,
        guideline=decision.guideline,
    )


def described(decision: RenderedDecision) -> list[tuple[str, str | None]]:
    """Return every outcome's name, and its description where it has one."""
    names: Sequence[str] = decision.names or decision.outcomes
    return [
        (name, text[len(name) + 2 :] if text.startswith(f"{name}: ") else None)
        for name, text in zip(names, decision.outcomes, strict=True)
    ]


def read_outcomes(outcomes: Sequence[str]) -> tuple[str, ...]:
    """Return outcomes' texts as a model reads them; answers keep the names that were sent.

    A name that is one word as programs write them becomes its words, and the letters or numbers
    of a list are left out where they are those of the whole list.

    >>> read_outcomes(["getQuote: a price", "HTTPError", "file_a_claim", "New York"])
    ('get Quote: a price', 'HTTP Error', 'file a claim', 'New York')
    >>> read_outcomes(["B) refund", "A) exchange"]), read_outcomes(["A. Milne", "E. White"])
    (('refund', 'exchange'), ('A. Milne', 'E. White'))
    >>> lettered = [f"{letter}) ticket" for letter in string.ascii_uppercase]
    >>> read_outcomes([*lettered, "none"])[::26]
    ('A) ticket', 'none')
    """
    return tuple(map(_read_name, _without_list(outcomes)))


def _read_name(outcome: str) -> str:
    match = _IDENTIFIER.fullmatch(outcome)
    return outcome if match is None else _SEAM.sub(" ", match[1]) + match[2]


def _without_list(outcomes: Sequence[str]) -> Sequence[str]:
    listed = [_LISTED.match(outcome) for outcome in outcomes]
    marks = {match[1].upper() for match in listed if match is not None}
    size = len(outcomes)
    if len(marks) == size and marks in (
        set(string.ascii_uppercase[:size]),
        {str(i + 1) for i in range(size)},
    ):
        return [text[match.end() :] for text, match in zip(outcomes, listed, strict=True) if match]
    return outcomes
