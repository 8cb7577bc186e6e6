"""The statements that stand for a decision's outcomes when an encoder reads them beside a context."""

from __future__ import annotations

from steelyard.decisions.rendering import RenderedDecision
from steelyard.decisions.statements import read_question
from steelyard.serving.connected.wire import described

#: Words from which a description that ends as a sentence does is one.
_SENTENCE_WORDS = 4


def hypotheses_of(decision: RenderedDecision) -> tuple[str, ...]:
    """Return a yes/no's statement and its negation; the statement of each outcome of another kind."""
    if decision.kind != "binary":
        return tuple(
            description
            if description is not None and _is_sentence(description)
            else _answer_is(decision.question, name, description)
            for name, description in described(decision)
        )
    (_, yes), (_, no) = described(decision)
    if reading := read_question(decision.question):
        statement, negation = reading.statement, reading.negation
    elif yes and no and _is_sentence(yes) and _is_sentence(no):
        statement, negation = yes, no
    else:
        statement = _answer_is(decision.question, "yes", yes)
        negation = _answer_is(decision.question, "no", no)
    if decision.opposite:
        opposite = read_question(decision.opposite)
        negation = opposite.statement if opposite else _answer_is(decision.opposite, "yes", None)
    return statement, negation


def _answer_is(question: str, name: str, description: str | None) -> str:
    outcome = name if description is None else f"{name} ({description.rstrip('.')})"
    return f'The answer to "{question}" is: {outcome}.'


def _is_sentence(text: str) -> bool:
    return text.rstrip().endswith((".", "!")) and len(text.split()) >= _SENTENCE_WORDS
