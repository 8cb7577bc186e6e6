"""Errors of webhooks."""

from steelyard.errors.kinds import ConflictError


class WebhookLimitError(ConflictError):
    """More webhooks than an account may have, or more deliveries asked for than may wait."""


class WebhookOffError(ConflictError):
    """A delivery asked for of a webhook that is switched off."""
