"""The body of every failed call on the wire; ``steelyard.errors`` makes it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """The error.

    ``details`` has ``path``, ``message`` and ``type`` of each field on a validation error; some
    refusals put other objects there, and most none.
    """

    code: str
    message: str
    retryable: bool
    request_id: str | None
    details: list[dict[str, Any]] | None = None


class ErrorBody(Struct, frozen=True, kw_only=True):
    """The body itself: one member, ``error``."""

    error: ErrorInfo
