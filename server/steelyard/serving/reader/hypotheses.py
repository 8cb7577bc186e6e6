"""The statements that stand for a decision's outcomes when an encoder reads them beside a context."""

from __future__ import annotations

from steelyard.decisions.rendering import RenderedDecision
from steelyard.decisions.statements import read_decision, statement_of_outcome
from steelyard.serving.connected.wire import described


def hypotheses_of(decision: RenderedDecision) -> tuple[str, ...]:
    """Return a yes/no's statement and its negation; the statement of each outcome of another kind."""
    if reading := read_decision(decision):
        return reading.statement, reading.negation
    return tuple(
        statement_of_outcome(decision.question, name, description)
        for name, description in described(decision)
    )
