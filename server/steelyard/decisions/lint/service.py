"""The lint use case: check a request as decide does, and say what about it makes answers worse.

No model runs and nothing is stored. Models are not looked up: a name of any model will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.decisions.lint.findings import find_warnings
from steelyard.decisions.lint.wire import LintResponse
from steelyard.decisions.validation import read_request


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
