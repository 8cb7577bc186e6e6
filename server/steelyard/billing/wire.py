"""Money on the wire: balances, purchases, automatic top-ups and referrals.

Amounts are exact decimal text in USD, times are Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.billing.states import PurchaseState
from steelyard.wire.queries import CursorPage, PageQuery
from steelyard.wire.schemas import doc

Usd = Annotated[str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?\Z", description="Exact decimal text.")]
#: An amount that a request names.
GivenUsd = Annotated[str, Meta(min_length=1, max_length=32)]


class CreatePurchase(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much credit to buy."""

    amount_usd: Annotated[GivenUsd, doc("5 to 10000, in whole cents.")]


class Purchase(Struct, frozen=True, kw_only=True):
    """Credit that was bought, or is to be paid."""

    id: str
    state: Annotated[
        PurchaseState, doc("Credit is there from `paid` on; `refunded` takes it back.")
    ]
    amount_usd: Usd
    provider: str
    is_top_up: Annotated[bool, doc("Whether the account bought by itself.")]
    created_at: float
    expires_at: Annotated[float, doc("When it ends if nobody has paid.")]
    paid_at: float | None = None
    ended_at: Annotated[float | None, doc("When it failed, expired, was refunded or disputed.")] = (
        None
    )


class NewPurchase(Struct, frozen=True, kw_only=True):
    """A purchase, and where to pay it."""

    purchase: Purchase
    checkout_url: Annotated[
        str | None, doc("Page of the provider to pay at; without one, pay by bank transfer.")
    ] = None


class PurchasePage(CursorPage[Purchase], frozen=True):
    """A page of purchases, the newest first."""


class Transaction(Struct, frozen=True, kw_only=True):
    """One line of the ledger; the lines of an operation sum to zero."""

    id: str
    operation_id: str
    route: Annotated[str, doc("What it was for: a route, or such as `purchase`.")]
    model: str
    book: str
    amount_usd: Usd
    created_at: float


class TransactionPage(CursorPage[Transaction], frozen=True):
    """A page of the ledger, the newest line first."""


class SetTopUp(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When to buy by itself, and how much."""

    threshold_usd: Annotated[GivenUsd, doc("Buy when less than this is available.")]
    amount_usd: Annotated[GivenUsd, doc("How much to buy: 5 to 10000.")]
    monthly_cap_usd: Annotated[GivenUsd, doc("The most to buy in a UTC month.")]


class TopUp(Struct, frozen=True, kw_only=True):
    """When an account buys by itself."""

    threshold_usd: Usd
    amount_usd: Usd
    monthly_cap_usd: Usd
    is_on: Annotated[bool, doc("False after three failures in a row; set it again.")]
    failures: int
    under_way: Annotated[str | None, doc("The purchase that is not paid yet.")] = None
    off_at: float | None = None


class EndedTopUp(Struct, frozen=True, kw_only=True):
    """Automatic top-ups that were ended."""

    ended: Annotated[bool, doc("Whether there were any.")]


class PaymentMethod(Struct, frozen=True, kw_only=True):
    """The saved card."""

    brand: str
    last4: str


class PurchaseLimits(Struct, frozen=True, kw_only=True):
    """How much a purchase may be."""

    minimum_usd: Usd
    maximum_usd: Usd


class Billing(Struct, frozen=True, kw_only=True):
    """The money of an account."""

    currency: Literal["USD"] = "USD"
    paid_usd: Usd
    promotional_usd: Annotated[Usd, doc("Credit that was given; spent first.")]
    balance_usd: Annotated[Usd, doc("Both together, holds included.")]
    available_usd: Usd
    reserved_usd: Annotated[Usd, doc("What work in progress holds.")]
    pending_usd: Annotated[Usd, doc("Purchases that nobody has paid yet.")]
    spent_usd: Usd
    refunded_usd: Usd
    provider: Annotated[str, doc("Who takes payments: `manual` or `stripe`.")]
    top_up: TopUp | None
    payment_method: PaymentMethod | None
    tier: int = 0
    limits: PurchaseLimits


class Referral(Struct, frozen=True, kw_only=True):
    """An account's own code, and its rewards."""

    code: str
    referral_usd: Annotated[Usd, doc("What both sides get; `0` where it is off.")]
    redeemed: Annotated[int, doc("Accounts that redeemed it.")]
    earned_usd: Usd


class RedeemReferral(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The referral code to redeem."""

    code: Annotated[str, Meta(min_length=1, max_length=32)]


class RedeemedReferral(Struct, frozen=True, kw_only=True):
    """A code that was redeemed; the credit comes with the first purchase that is paid."""

    referral_usd: Usd
    redeemed_at: float


class ReceivedEvent(Struct, frozen=True, kw_only=True):
    """The result of a provider's event."""

    outcome: Literal["applied", "ignored", "waiting", "parked", "cleared"]


class TransactionsQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the ledger, or all of it."""

    format: Annotated[Literal["json", "csv"], doc("`csv` is the whole ledger, not a page.")] = (
        "json"
    )


class ParkedNotice(Struct, frozen=True, kw_only=True):
    """A provider's notice that contradicts its purchase; it gave no credit."""

    id: str
    provider: str
    purchase_id: str | None
    received_at: float
    reason: str
