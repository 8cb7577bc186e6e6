"""Rules about a request as a whole; each reports on the first decision that it concerns."""

from __future__ import annotations

from steelyard.decisions.lint.subjects import Subject, decision_key
from steelyard.wire.violations import show


def duplicate_questions(subject: Subject) -> str | None:
    """Find decisions that ask the same question with the same outcomes.

    Decisions do not affect each other, so that the second answer is the first again, at the cost of
    reading it twice. Two policies on one question can be applied to one answer.
    """
    alike = subject.request.alike[decision_key(subject.decision)]
    if len(alike) < 2 or alike[0] is not subject.decision:
        return None
    shown = ", ".join(show(decision.id) for decision in alike[1:3])
    more = f" and {len(alike) - 3} more" if len(alike) > 3 else ""
    return (
        f"The same question with the same outcomes is asked again in {shown}{more}, and has the "
        "same answer. Ask once."
    )


def empty_context(subject: Subject) -> str | None:
    """Find a context that is blank, or an empty object or array.

    There is then nothing to decide on, and the probabilities follow from the wording alone.
    Mostly a variable was not filled in.
    """
    if subject.decision.index > 0 or subject.request.context_characters > 0:
        return None
    return "The context is empty, so that only the wording decides. Put in it what to decide on."
