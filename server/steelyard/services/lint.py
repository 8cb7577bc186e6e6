"""The lint use case: check a request as decide does, and say what about it makes answers worse.

No model runs and nothing is stored. Models are not looked up: a name of any model will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.decisions.lint.findings import find_warnings
from steelyard.decisions.validation import read_request
from steelyard.services.bodies import read_body
from steelyard.wire.lint import LintResponse


def lint_request(payload: bytes | bytearray | Mapping[str, Any]) -> LintResponse:
    """Lint a decide request.

    Parameters
    ----------
    payload : bytes or mapping
        JSON in UTF-8, or the same thing as plain Python values.

    Returns
    -------
    LintResponse
        Its warnings, by decision and then by rule.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When fields are invalid; ``details`` has every one of them.

    Examples
    --------
    >>> decision = {"id": "refund", "kind": "binary", "question": "Is it a refund?"}
    >>> lint_request({"context": "Send my money back.", "decisions": [decision]})
    LintResponse(warnings=[])
    """
    return LintResponse(warnings=find_warnings(read_request(payload)))


def lint_dict(payload: bytes | bytearray | Mapping[str, Any]) -> dict[str, Any]:
    """Lint a decide request, giving plain dictionaries and lists; raises what ``lint_request`` does."""
    answer: dict[str, Any] = msgspec.to_builtins(lint_request(payload))
    return answer


async def lint_async(payload: bytes) -> LintResponse:
    """Lint a decide request without blocking the event loop; raises what ``lint_request`` does."""
    return await read_body(lint_request, payload)
