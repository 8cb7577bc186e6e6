"""The kinds of error: classes that share an HTTP status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors.base import PathStep, SteelyardError, Violation


class UnauthenticatedError(SteelyardError, PermissionError):
    """A call without a valid API key."""

    status = 401


class PaymentRequiredError(SteelyardError, RuntimeError):
    """A call without enough credit."""

    status = 402


class ConflictError(SteelyardError, RuntimeError):
    """A call that does not go with how things are now."""

    status = 409


class GoneError(SteelyardError, LookupError):
    """A resource that was deleted for good."""

    status = 410


class TooLargeError(SteelyardError, ValueError):
    """More than may be sent or kept."""

    status = 413


class UnsupportedError(SteelyardError, ValueError):
    """A body in a form that the route does not read."""

    status = 415


class UnprocessableError(SteelyardError, ValueError):
    """A request that can be read and is wrong.

    The ``path`` of the one place that is wrong makes the ``details``.

    >>> UnprocessableError("Shorten it.", path=("body", "context")).details[0]["path"]
    ['body', 'context']
    """

    status = 422

    def __init__(
        self,
        message: str,
        *,
        path: tuple[PathStep, ...] | None = None,
        details: Sequence[Mapping[str, Any]] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        if details is None and path is not None:
            details = [Violation(path, message, self.code).body()]
        super().__init__(message, details=details, retry_after_s=retry_after_s)


class ThrottledError(SteelyardError, RuntimeError):
    """More than the caller may ask for now."""

    status = 429
    retryable = True


class UnavailableError(SteelyardError, RuntimeError):
    """A part of the server that cannot answer at the moment."""

    status = 503
    retryable = True
