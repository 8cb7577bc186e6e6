"""Errors of buying credit."""

from steelyard.errors.base import SteelyardError
from steelyard.errors.kinds import ConflictError, UnauthenticatedError, UnavailableError


class AccountsOffError(UnavailableError):
    """A call about accounts or money to a server without accounts."""

    retryable = False


class ConsoleOnlyError(SteelyardError, PermissionError):
    """A route of the console, called with an API key."""

    code = "console_only"
    status = 403


class InvalidSignatureError(UnauthenticatedError):
    """A payment provider's event that the provider did not sign."""


class PaymentProviderError(UnavailableError):
    """A payment provider that does not answer, or refuses the request."""

    code = "payment_provider_unavailable"
    default_retry_after_s = 5.0


class NoPaymentMethodError(ConflictError):
    """Automatic top-ups of an account without a saved card."""


class PurchaseStateError(ConflictError):
    """A purchase whose state does not allow the request."""


class ReferralRefusedError(ConflictError):
    """A referral code that does not count for this account."""
