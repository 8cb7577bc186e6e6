"""A decision as a statement and its negation: as the caller wrote them, else by grammar."""

from __future__ import annotations

from steelyard.decisions.kinds import Decision
from steelyard.decisions.rendering import RenderedDecision
from steelyard.decisions.statements.reading import Reading, read_question


def read_decision(decision: Decision | RenderedDecision) -> Reading | None:
    """Return the statements of *yes* and *no* to a decision; None of another kind, or where no rule is sure.

    A statement and an opposite of the caller's are taken as they are.

    >>> late = RenderedDecision("binary", "Late?", ("yes", "no"), statement="The parcel is late.")
    >>> read_decision(late).negation
    'The parcel is not late.'
    """
    question = decision.question
    if decision.kind != "binary" or not isinstance(question, str):
        return None
    statement, negation = decision.statement, ""
    if decision.opposite:
        opposite = read_question(decision.opposite)
        negation = decision.opposite if opposite is None else opposite.statement
    reading = read_question(statement or question)
    if reading is None:
        if not statement:
            return None
        start = statement[:1].lower() + statement[1:]
        return Reading(statement, negation or f"It is not the case that {start}")
    return Reading(statement or reading.statement, negation or reading.negation)
