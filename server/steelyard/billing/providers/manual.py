"""Bank transfers: an operator says when money came or went back, with ``steelyard billing``."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.billing.notices import Ask, Begun, Card, Notice, ProviderEvent
from steelyard.errors import NotFoundError

_DAY_S = 86_400.0


class ManualProvider:
    """Waits for an operator."""

    name = "manual"
    lifetime_s = 30 * _DAY_S
    needs_card = False

    def begin(self, ask: Ask) -> Begun:
        """Return that nothing is to be done but to send the money."""
        return Begun(reference=ask.purchase_id)

    def charge(self, ask: Ask, card: Card | None) -> Begun:  # noqa: ARG002
        """Return that the owner has to send the money."""
        return Begun(reference=ask.purchase_id)

    def refund(self, ask: Ask) -> Notice:
        """Return that the operator, who asks, sends the money back."""
        return Notice(
            kind="refunded",
            amount_nano=ask.amount_nano,
            purchase_id=ask.purchase_id,
            account_id=ask.account_id,
        )

    def card_of(self, payment: str) -> Card | None:  # noqa: ARG002
        """Return that transfers save no card."""
        return None

    def read(self, body: bytes, headers: Mapping[str, str]) -> ProviderEvent:  # noqa: ARG002
        """Refuse events: a bank transfer has no signed notice."""
        raise NotFoundError(
            "Bank transfers send no events; an operator confirms them: steelyard billing confirm."
        )
