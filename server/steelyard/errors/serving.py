"""Errors of a decision and the model that answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors.kinds import ConflictError, UnavailableError, UnprocessableError


class InvalidReferenceError(UnprocessableError):
    """A name of a model in a form that the route does not take."""


class TooManyTokensError(UnprocessableError):
    """More input tokens in one request than the caller may send in a minute."""


class ContextTooLongError(UnprocessableError):
    """More input tokens than one request may have."""


class ImagesNotSupportedError(UnprocessableError):
    """Images sent to a model that reads text alone."""


class ModelUnavailableError(ConflictError):
    """A model that can no longer be loaded."""


class EngineUnavailableError(UnavailableError):
    """The scoring engine cannot answer at the moment.

    ``is_unreached``: no engine could be reached with the request, so that its idempotency key stays
    free.
    """

    default_retry_after_s = 1.0

    def __init__(
        self,
        message: str,
        *,
        details: Sequence[Mapping[str, Any]] | None = None,
        retry_after_s: float | None = None,
        is_unreached: bool = False,
    ) -> None:
        super().__init__(message, details=details, retry_after_s=retry_after_s)
        self.is_unreached = is_unreached
