"""A decision as a statement and its negation: as the caller wrote them, else by grammar."""

from __future__ import annotations

import functools

from steelyard.decisions.kinds import Decision
from steelyard.decisions.rendering import RenderedDecision
from steelyard.decisions.statements.reading import Reading, read_question

#: A request asks for the reading of a question several times, and requests ask the same questions.
_CACHED_QUESTIONS = 1024


def read_decision(decision: Decision | RenderedDecision) -> Reading | None:
    """Return the statements of *yes* and *no* to a decision; None of another kind, or where no rule is sure."""
    question = decision.question
    if decision.kind != "binary" or not isinstance(question, str):
        return None
    return read_yes_no(question, decision.statement, decision.opposite)


@functools.lru_cache(_CACHED_QUESTIONS)
def read_yes_no(question: str, statement: str = "", opposite: str = "") -> Reading | None:
    """Return the statements of *yes* and *no* to a question; None where no rule is sure.

    A statement and an opposite of the caller's are taken as they are.

    >>> read_yes_no("Late?", "The parcel is late.").negation
    'The parcel is not late.'
    """
    negation = ""
    if opposite:
        turned = read_question(opposite)
        negation = opposite if turned is None else turned.statement
    reading = read_question(statement or question)
    if reading is None:
        if not statement:
            return None
        start = statement[:1].lower() + statement[1:]
        return Reading(statement, negation or f"It is not the case that {start}")
    return Reading(statement or reading.statement, negation or reading.negation)
