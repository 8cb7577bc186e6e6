"""Providers of payments: an operator who confirms bank transfers, or Stripe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from steelyard.billing.notices import Ask, Begun, Card, Notice, ProviderEvent
from steelyard.billing.providers.manual import ManualProvider
from steelyard.settings import InvalidSettingError, Settings


class Provider(Protocol):
    """Takes payments; every call may block, and may be repeated for the same purchase."""

    name: str
    #: Seconds after which an unpaid purchase ends.
    lifetime_s: float
    #: Whether automatic top-ups need a saved card.
    needs_card: bool

    def begin(self, ask: Ask) -> Begun:
        """Return where a purchase is paid."""

    def charge(self, ask: Ask, card: Card | None) -> Begun:
        """Charge a saved card, and return the result."""

    def refund(self, ask: Ask) -> Notice | None:
        """Send the money of a purchase back; ``None`` where an event will tell of it."""

    def card_of(self, payment: str) -> Card | None:
        """Return the card that a payment saved; ``None`` where it saved none."""

    def read(self, body: bytes, headers: Mapping[str, str]) -> ProviderEvent:
        """Return an event once its signature is verified."""


def open_provider(settings: Settings) -> Provider:
    """Return the provider that the settings name."""
    if settings.payments == "manual":
        return ManualProvider()
    if not settings.stripe_key or not settings.stripe_events_secret:
        raise InvalidSettingError(
            "The setting payments (STEELYARD_PAYMENTS) is stripe; give stripe_key "
            "(STEELYARD_STRIPE_KEY) and stripe_events_secret (STEELYARD_STRIPE_EVENTS_SECRET) too."
        )
    try:
        # Imported where it is chosen: the package is an extra.
        from steelyard.billing.providers.stripe_payments import StripeProvider  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "stripe":
            raise
        raise InvalidSettingError(
            "The setting payments (STEELYARD_PAYMENTS) is stripe, whose package is not installed; "
            "run: pip install 'steelyard[stripe]'"
        ) from error
    return StripeProvider(
        settings.stripe_key,
        settings.stripe_events_secret,
        return_url=settings.url,
        api_url=settings.stripe_url,
    )
