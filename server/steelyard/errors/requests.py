"""Errors of any request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors.base import MAX_DETAILS, PathStep, SteelyardError, Violation
from steelyard.errors.kinds import (
    ConflictError,
    TooLargeError,
    UnavailableError,
    UnprocessableError,
    UnsupportedError,
)


class MalformedRequestError(SteelyardError, ValueError):
    """Bytes that are no well-formed HTTP request."""

    code = "malformed_request"
    status = 400


class MisdirectedRequestError(SteelyardError, LookupError):
    """A request for a server of another name, as a page that rebinds its name sends it."""

    code = "misdirected_request"
    status = 421


class CrossSiteError(SteelyardError, PermissionError):
    """A write that a page of another site sent."""

    code = "cross_site_request"
    status = 403


class InvalidRequestError(UnprocessableError):
    """A request with mistakes; ``details`` lists them, field by field.

    They are in the order found, and ``n_unlisted`` more were. Without a message, one is made of
    them.

    >>> error = InvalidRequestError(violations=[Violation(("body", "a"), "Remove a.", "x")])
    >>> error.status, error.message, error.details[0]["path"]
    (422, 'Remove a.', ['body', 'a'])
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        violations: Sequence[Violation] = (),
        n_unlisted: int = 0,
        details: Sequence[Mapping[str, Any]] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        listed = tuple(violations[:MAX_DETAILS])
        n_unlisted += len(violations) - len(listed)
        if message is None:
            message = _summary(listed, n_unlisted)
        if details is None and listed:
            details = [violation.body() for violation in listed]
        super().__init__(message, details=details, retry_after_s=retry_after_s)
        self.violations = listed

    @classmethod
    def at(cls, path: Sequence[PathStep], message: str, type_: str) -> InvalidRequestError:
        """Return the refusal of one place.

        >>> InvalidRequestError.at(
        ...     ("query", "limit"), "limit is 0; give 1.", "out_of_range"
        ... ).message
        'limit is 0; give 1.'
        """
        return cls(violations=[Violation(tuple(path), message, type_)])


class NotFoundError(SteelyardError, LookupError):
    """A resource, model or route that is not there."""

    code = "not_found"
    status = 404


class MethodNotAllowedError(SteelyardError, RuntimeError):
    """A route asked with a method that it does not have."""

    code = "method_not_allowed"
    status = 405


class RequestTimeoutError(SteelyardError, TimeoutError):
    """A request that did not arrive in time."""

    code = "request_timeout"
    status = 408
    retryable = True


class IdempotencyConflictError(ConflictError, ValueError):
    """An idempotency key that was used with another request."""


class IdempotencyResponseExpiredError(ConflictError, LookupError):
    """An idempotency key whose answer is no longer kept; the request is not run again."""


class OutcomeUnknownError(ConflictError):
    """A request without a key whose end the server cannot tell."""


class RequestInProgressError(ConflictError):
    """An idempotency key whose request has not ended."""

    retryable = True
    default_retry_after_s = 2.0


class PayloadTooLargeError(TooLargeError):
    """A body over the bound."""


class UnsupportedMediaTypeError(UnsupportedError):
    """A body of a content type that the route does not read."""


class UnsupportedEncodingError(UnsupportedError):
    """A body compressed in a way that the server does not undo."""


class InternalError(SteelyardError, RuntimeError):
    """A fault of the server itself."""

    code = "internal_error"
    status = 500


class DataDamagedError(SteelyardError, RuntimeError):
    """Stored data that can no longer be read: missing, cut off, or changed."""

    code = "data_damaged"
    status = 500


class StorageUnavailableError(UnavailableError):
    """The state cannot be written at the moment: the disk is full, or the database is away."""

    default_retry_after_s = 5.0


class DeadlineExceededError(SteelyardError, TimeoutError):
    """No answer by the deadline, and nothing was charged."""

    code = "deadline_exceeded"
    status = 504
    retryable = True


def _summary(violations: Sequence[Violation], n_unlisted: int) -> str:
    if not violations:
        return "The request is invalid; correct it and send it again."
    n_more = len(violations) - 1 + n_unlisted
    if n_more == 0:
        return violations[0].message
    are = "one more problem was found" if n_more == 1 else f"{n_more} more problems were found"
    all_listed = "" if n_unlisted == 0 else f" (the first {len(violations)} are listed)"
    return f"{violations[0].message} In all, {are}{all_listed}; see details."
