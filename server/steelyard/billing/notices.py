"""A provider's notice of a purchase, independent of the provider, and how it may disagree."""

from __future__ import annotations

from msgspec import Struct

from steelyard.billing.states import NoticeKind
from steelyard.ledger.money import to_usd

CURRENCY = "usd"


class Notice(Struct, frozen=True, kw_only=True):
    """One thing that happened to a purchase; ``None`` where the provider does not say."""

    kind: NoticeKind
    amount_nano: int
    currency: str = CURRENCY
    purchase_id: str | None = None
    account_id: str | None = None
    #: The provider's name of the payment, and of the customer whose card may be used again.
    payment: str | None = None
    customer: str | None = None
    #: The provider's name of the page that took the payment.
    session: str | None = None
    #: What of it cannot be used, so that it is stored for an operator to look at.
    unusable: str | None = None


class Ask(Struct, frozen=True, kw_only=True):
    """A request to a provider about one purchase."""

    purchase_id: str
    account_id: str
    amount_nano: int
    payment: str | None = None


class Begun(Struct, frozen=True, kw_only=True):
    """A provider's response to a new purchase."""

    reference: str | None = None
    checkout_url: str | None = None
    #: What it knows already.
    notice: Notice | None = None


class Card(Struct, frozen=True, kw_only=True):
    """A saved card: the provider's identifiers, and the digits that may be displayed."""

    customer: str
    method: str
    brand: str
    last4: str


class ProviderEvent(Struct, frozen=True, kw_only=True):
    """A verified event; without a notice it says nothing of purchases."""

    id: str
    notice: Notice | None = None


def disagreement(
    notice: Notice,
    *,
    account_id: str | None,
    amount_nano: int | None,
    reference: str | None,
) -> str | None:
    """Return how a notice contradicts the purchase it names; ``None`` where they agree."""
    if notice.unusable is not None:
        return notice.unusable
    if account_id is None or amount_nano is None:
        return "It names no purchase of this server."
    agreements = {
        f"It names the account {notice.account_id}, and the purchase is of {account_id}.": (
            notice.account_id in {None, account_id}
        ),
        f"It is of the session {notice.session}, and the purchase is of {reference}.": (
            None in {notice.session, reference} or notice.session == reference
        ),
        f"It is in {notice.currency.upper()[:8]}, and the purchase in USD.": (
            notice.currency.lower() == CURRENCY
        ),
        f"It is about {to_usd(notice.amount_nano)} USD, and the purchase about "
        f"{to_usd(amount_nano)} USD.": notice.amount_nano == amount_nano,
    }
    return next((reason for reason, agrees in agreements.items() if not agrees), None)
