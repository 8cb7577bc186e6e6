"""Applying the rules to a request."""

from __future__ import annotations

from steelyard.decisions.lint.registry import RULES
from steelyard.decisions.lint.subjects import RequestText, Subject
from steelyard.decisions.lint.wire import LintWarning
from steelyard.decisions.validation import ValidRequest


def find_warnings(request: ValidRequest) -> list[LintWarning]:
    """Find what about a request's decisions makes their answers worse.

    >>> from steelyard.decisions.validation import read_request
    >>> decision = {"id": "late", "kind": "binary", "question": "Is the parcel not late?"}
    >>> [
    ...     warning.rule
    ...     for warning in find_warnings(
    ...         read_request({"context": "It came today.", "decisions": [decision]})
    ...     )
    ... ]
    ['negation']
    """
    text = RequestText(request)
    found = []
    for decision in request.decisions:
        subject = Subject(decision, text)
        for rule in RULES:
            message = rule.check(subject) if decision.kind in rule.kinds else None
            if message is not None:
                found.append(
                    LintWarning(
                        decision=decision.id,
                        rule=rule.name,
                        severity=rule.severity,
                        message=message,
                    )
                )
    return found
