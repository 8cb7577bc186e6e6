"""The one shape of a failed call, checked in one place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

REQUEST_ID = re.compile(r"req_[0-9a-z]+")
#: Codes of refusals that always say where in the request they lie.
_PLACED = {
    "invalid_request",
    "context_too_long",
    "too_many_tokens",
    "images_not_supported",
    "invalid_reference",
    "supervision_mismatch",
}


def assert_canonical_error(
    response: Any,
    status: int,
    code: str,
    *,
    path: list[str | int] | None = None,
    message: str | None = None,
    retryable: bool = False,
) -> dict[str, Any]:
    """Check a response's status, body and headers against the contract; give its ``error``.

    ``path`` is that of the first detail, and ``message`` a pattern found in its message (in the
    error's own when there are no details).
    """
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return assert_canonical_body(
        response.content,
        response.headers,
        code,
        path=path,
        message=message,
        retryable=retryable,
    )


def assert_canonical_body(
    content: bytes,
    headers: Mapping[str, str],
    code: str,
    *,
    path: list[str | int] | None = None,
    message: str | None = None,
    retryable: bool = False,
) -> dict[str, Any]:
    """Check a body and its headers; see ``assert_canonical_error``."""
    body = json.loads(content)
    # What TypeSafe's clients read stands beside it on their route.
    body.pop("detail", None)
    assert body.keys() == {"error"}
    error = body["error"]
    assert error.keys() == {"code", "message", "retryable", "request_id", "details"}
    assert error["code"] == code, error
    assert error["retryable"] is retryable
    assert REQUEST_ID.fullmatch(error["request_id"])
    assert headers["X-Request-ID"] == error["request_id"]
    assert error["message"].endswith((".", "?")), error["message"]
    text = error["message"]
    if code in _PLACED:
        assert all(part["path"] for part in error["details"]), error
    if path is not None:
        first = error["details"][0]
        assert first.keys() == {"path", "message", "type"}
        assert first["path"] == path, error["details"]
        text = first["message"]
    if message is not None:
        assert re.search(message, text), text
    return error


def parse_raw_response(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Split the first raw HTTP response into status, headers and body."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[_canonical(name)] = value.strip()
    length = int(headers["Content-Length"])
    return int(status_line.split(" ")[1]), headers, rest[:length]


def _canonical(name: str) -> str:
    return "X-Request-ID" if name.lower() == "x-request-id" else name.title()
