"""Errors of saved views."""

from __future__ import annotations

from steelyard.errors.kinds import ConflictError


class ViewExistsError(ConflictError):
    """A view under a name that another has."""


class ViewLimitError(ConflictError):
    """More saved views than an account may have."""
