"""Every error Steelyard raises on purpose: one tree, one body on the wire.

Here: the exceptions, their codes and statuses, and the body each gives. Not here: the HTTP headers
that go with them (``steelyard.api``). Every module may import this one; it imports none of ours.

::

    SteelyardError
    ├── MalformedRequestError      400  malformed_request       ValueError
    ├── InvalidRequestError        422  invalid_request         ValueError
    ├── ContextTooLongError        422  context_too_long        ValueError
    ├── ImagesNotSupportedError    422  images_not_supported    ValueError
    ├── NotFoundError              404  not_found               LookupError
    ├── MethodNotAllowedError      405  method_not_allowed      RuntimeError
    ├── RequestTimeoutError        408  request_timeout         TimeoutError    retryable
    ├── PayloadTooLargeError       413  payload_too_large       ValueError
    ├── UnsupportedMediaTypeError  415  unsupported_media_type  ValueError
    ├── UnsupportedEncodingError   415  unsupported_encoding    ValueError
    ├── RateLimitedError           429  rate_limited            RuntimeError    retryable
    ├── InternalError              500  internal_error          RuntimeError
    ├── EngineUnavailableError     503  engine_unavailable      RuntimeError    retryable
    └── DeadlineExceededError      504  deadline_exceeded       TimeoutError    retryable
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

#: One step towards a place in a request: a field's name, or an index from 0.
PathStep = str | int

#: The most violations one answer lists; past it the message says how many more there are, so that
#: a hostile body of a megabyte cannot make an answer of a hundred.
MAX_DETAILS = 1000


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request.

    Parameters
    ----------
    path : tuple of str or int
        Where it is; on the wire the first step is ``"body"`` (or ``"query"``).
    message : str
        One or two sentences: what is wrong with the value and what to change.
    type : str
        A short stable word for programs, such as ``missing`` or ``out_of_range``.

    Examples
    --------
    >>> Violation(("body", "context"), "context is missing; add it.", "missing").body()
    {'path': ['body', 'context'], 'message': 'context is missing; add it.', 'type': 'missing'}
    """

    path: tuple[PathStep, ...]
    message: str
    type: str

    def body(self) -> dict[str, Any]:
        """Give the entry of ``details`` that the wire carries."""
        return {"path": list(self.path), "message": self.message, "type": self.type}


class SteelyardError(Exception):
    """Anything Steelyard refuses or fails at, with its code, its status and a sentence.

    Parameters
    ----------
    message : str
        Full sentences for a person: what went wrong and what to do next.
    details : sequence of mappings, optional
        Machine-readable parts of the refusal; ``None`` when there are none.
    retry_after_s : float, optional
        Seconds to wait before trying again; the class's own default when left out.

    Attributes
    ----------
    code : str
        The error's name on the wire; unique in the tree.
    status : int
        The HTTP status.
    retryable : bool
        Whether the same request may succeed later; no evidence that nothing ran.
    """

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    default_retry_after_s: ClassVar[float | None] = None

    def __init__(
        self,
        message: str,
        *,
        details: Sequence[Mapping[str, Any]] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = None if details is None else [dict(detail) for detail in details]
        self.retry_after_s = self.default_retry_after_s if retry_after_s is None else retry_after_s

    def __str__(self) -> str:
        """Give the message alone: some builtin bases would print it their own way."""
        return self.message

    def body(self, request_id: str | None = None) -> dict[str, Any]:
        """Give the body every failed call answers with.

        Parameters
        ----------
        request_id : str, optional
            The id that the ``X-Request-ID`` header carries too.

        Returns
        -------
        dict
            ``{"error": {"code", "message", "retryable", "request_id", "details"}}``.

        Examples
        --------
        >>> NotFoundError("There is no model named 'x'.").body("req_1")["error"]["code"]
        'not_found'
        """
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "retryable": self.retryable,
                "request_id": request_id,
                "details": self.details,
            }
        }


class MalformedRequestError(SteelyardError, ValueError):
    """Bytes that are no well-formed HTTP request."""

    code = "malformed_request"
    status = 400


class InvalidRequestError(SteelyardError, ValueError):
    """A request with something wrong in it; ``details`` says what, field by field.

    Parameters
    ----------
    message : str, optional
        Left out, it is made of the violations.
    violations : sequence of Violation
        Everything found wrong, in the order found.
    n_unlisted : int
        How many more were found than ``violations`` holds.

    Examples
    --------
    >>> error = InvalidRequestError(violations=[Violation(("body", "a"), "Remove a.", "x")])
    >>> error.status, error.message, error.details[0]["path"]
    (422, 'Remove a.', ['body', 'a'])
    """

    code = "invalid_request"
    status = 422

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


class ContextTooLongError(SteelyardError, ValueError):
    """More input tokens than one request may have."""

    code = "context_too_long"
    status = 422


class ImagesNotSupportedError(SteelyardError, ValueError):
    """Images sent to a model that reads text alone."""

    code = "images_not_supported"
    status = 422


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


class PayloadTooLargeError(SteelyardError, ValueError):
    """A body over the bound."""

    code = "payload_too_large"
    status = 413


class UnsupportedMediaTypeError(SteelyardError, ValueError):
    """A body of a content type that the route does not read."""

    code = "unsupported_media_type"
    status = 415


class UnsupportedEncodingError(SteelyardError, ValueError):
    """A body compressed in a way that the server does not undo."""

    code = "unsupported_encoding"
    status = 415


class RateLimitedError(SteelyardError, RuntimeError):
    """More requests than the caller may send now."""

    code = "rate_limited"
    status = 429
    retryable = True
    default_retry_after_s = 1.0


class InternalError(SteelyardError, RuntimeError):
    """A fault of the server itself."""

    code = "internal_error"
    status = 500


class EngineUnavailableError(SteelyardError, RuntimeError):
    """The scoring engine cannot answer at the moment."""

    code = "engine_unavailable"
    status = 503
    retryable = True
    default_retry_after_s = 1.0


class DeadlineExceededError(SteelyardError, TimeoutError):
    """No answer by the deadline, and nothing was charged."""

    code = "deadline_exceeded"
    status = 504
    retryable = True


def error_classes() -> dict[str, type[SteelyardError]]:
    """Give every class of the tree by its code.

    Examples
    --------
    >>> error_classes()["not_found"].__name__
    'NotFoundError'
    """
    found: dict[str, type[SteelyardError]] = {}
    pending: list[type[SteelyardError]] = SteelyardError.__subclasses__()
    while pending:
        cls = pending.pop()
        found[cls.code] = cls
        pending.extend(cls.__subclasses__())
    return dict(sorted(found.items()))


def error_from_body(
    status: int, body: object, *, retry_after_s: float | None = None
) -> SteelyardError:
    """Turn the body of a failed call back into the error that the server raised.

    Parameters
    ----------
    status : int
        The HTTP status, told in the message when the body is not one of ours.
    body : object
        The decoded JSON body, whatever it is.
    retry_after_s : float, optional
        Seconds, from the ``Retry-After`` header.

    Returns
    -------
    SteelyardError
        Of the class with the body's code; of the base class when the code or body is unknown.

    Examples
    --------
    >>> str(error_from_body(404, NotFoundError("There is no such row.").body("req_1")))
    'There is no such row.'
    """
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return SteelyardError(
            f"The server answered {status} without an error body; is a Steelyard server there?",
            retry_after_s=retry_after_s,
        )
    details = error.get("details")
    cls = error_classes().get(str(error.get("code")), SteelyardError)
    return cls(
        str(error["message"]),
        details=details if isinstance(details, list) else None,
        retry_after_s=retry_after_s,
    )


def _summary(violations: Sequence[Violation], n_unlisted: int) -> str:
    if not violations:
        return "The request is invalid; correct it and send it again."
    n_more = len(violations) - 1 + n_unlisted
    if n_more == 0:
        return violations[0].message
    are = "one more problem was found" if n_more == 1 else f"{n_more} more problems were found"
    all_listed = "" if n_unlisted == 0 else f" (the first {len(violations)} are listed)"
    return f"{violations[0].message} In all, {are}{all_listed}; see details."
