"""Errors that only a client raises, beside ``steelyard.errors``: no server answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors import SteelyardError


class ServerUnreachableError(SteelyardError, ConnectionError):
    """No connection to the server, or one that broke before the answer."""

    code = "server_unreachable"
    status = 503
    retryable = True


class NoAnswerInTimeError(SteelyardError, TimeoutError):
    """No answer within the client's own time; the server may still be at work."""

    code = "no_answer_in_time"
    status = 504
    retryable = True


class UnexpectedAnswerError(SteelyardError, ValueError):
    """An answer that this client does not know: another program's, or a newer server's.

    Parameters
    ----------
    message : str
        The failure and the remedy.
    details : sequence of mappings, optional
        The server's own, where it sent some.
    retry_after_s : float, optional
        Seconds, from the ``Retry-After`` header.
    http_status : int, default 200
        The status of the answer.
    server_code : str, optional
        The error code that the server gave, where it gave one.
    """

    code = "unexpected_answer"
    status = 502

    def __init__(
        self,
        message: str,
        *,
        details: Sequence[Mapping[str, Any]] | None = None,
        retry_after_s: float | None = None,
        http_status: int = 200,
        server_code: str | None = None,
    ) -> None:
        super().__init__(message, details=details, retry_after_s=retry_after_s)
        self.http_status = http_status
        self.server_code = server_code
