"""The body of every failed call on the wire; ``steelyard.errors`` makes it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class ErrorDetail(Struct, frozen=True, kw_only=True):
    """One failed field of an invalid request."""

    path: list[str | int]
    message: str
    type: str | None = None


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """The error.

    ``details`` holds ``ErrorDetail`` entries on a validation error; some refusals put other objects
    there, and most none.
    """

    code: str
    message: str
    retryable: bool
    request_id: str | None
    details: list[dict[str, Any]] | None = None


class ErrorBody(Struct, frozen=True, kw_only=True):
    """The body itself: one member, ``error``."""

    error: ErrorInfo
