"""The statements that stand for a decision's outcomes when an encoder reads them beside a context."""

from __future__ import annotations

from steelyard.decisions.rendering import RenderedDecision, described
from steelyard.decisions.statements import (
    read_decision,
    statement_of_outcome,
    without_guidance,
)


def hypotheses_of(decision: RenderedDecision, *, questions: bool = False) -> tuple[str, ...]:
    """Return a yes/no's statement and its negation; the statement of each outcome of another kind.

    An encoder that was trained on ``questions`` reads one text of a yes/no: its statement, or the
    question as it is typed, without its guidance, where its outcomes are not described either.
    """
    reading = read_decision(decision)
    if reading is not None:
        return (reading.statement,) if questions else (reading.statement, reading.negation)
    question = decision.question
    if decision.kind == "binary":
        question = without_guidance(question)
        if questions and decision.outcomes == decision.names:
            return (question,)
    return tuple(
        statement_of_outcome(question, name, description)
        for name, description in described(decision)
    )
