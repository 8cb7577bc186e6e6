"""Errors of keys, credit and rates."""

from steelyard.errors.base import SteelyardError
from steelyard.errors.kinds import (
    ConflictError,
    PaymentRequiredError,
    ThrottledError,
    UnauthenticatedError,
)


class MissingApiKeyError(UnauthenticatedError):
    """A call that needs an API key, without one."""


class InvalidApiKeyError(UnauthenticatedError):
    """An API key that is malformed, unknown or revoked."""


class InsufficientCreditError(PaymentRequiredError):
    """Less credit than the most that the request may cost."""


class KeyCapReachedError(PaymentRequiredError):
    """A key that has spent its cap of the month."""


class KeyScopeError(SteelyardError, PermissionError):
    """A call outside the scope of its API key."""

    code = "key_scope"
    status = 403


class RateLimitedError(ThrottledError):
    """More requests than the caller may send now."""

    default_retry_after_s = 1.0


class PriceChangedError(ConflictError):
    """A price above the most that the caller would pay."""
