"""The lint use case: check a request as decide does, and warn of wording that makes answers worse.

No model runs and nothing is stored. Models are not looked up: a name of any model will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.decisions.lint.registry import RULES
from steelyard.decisions.lint.subjects import RequestText, Subject
from steelyard.decisions.lint.wire import LintResponse, LintWarning
from steelyard.decisions.validation import ValidRequest, read_request


def lint_request(payload: bytes | bytearray | Mapping[str, Any]) -> LintResponse:
    """Lint a decide request.

    >>> decision = {"id": "refund", "kind": "binary", "question": "Is it a refund?"}
    >>> lint_request({"context": "Send my money back.", "decisions": [decision]})
    LintResponse(warnings=[])
    """
    return LintResponse(warnings=find_warnings(read_request(payload)))


def lint_dict(payload: bytes | bytearray | Mapping[str, Any]) -> dict[str, Any]:
    """Lint a decide request, giving plain dictionaries and lists."""
    answer: dict[str, Any] = msgspec.to_builtins(lint_request(payload))
    return answer


def find_warnings(request: ValidRequest) -> list[LintWarning]:
    """Return warnings about wording that makes a request's answers worse.

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
    warnings = []
    for decision in request.decisions:
        subject = Subject(decision, text)
        for rule in RULES:
            message = rule.check(subject) if decision.kind in rule.kinds else None
            if message is not None:
                warnings.append(
                    LintWarning(
                        decision=decision.id,
                        rule=rule.name,
                        severity=rule.severity,
                        message=message,
                    )
                )
    return warnings
