"""Tables of purchases, providers' notices, automatic top-ups, and referrals."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from steelyard.storage.tables import metadata

#: ``reference`` is the provider's name of what the customer pays by, ``payment`` of the payment
#: itself. ``operation_id`` is the operation to which everything about it is posted.
purchases = Table(
    "purchases",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("operation_id", Text, ForeignKey("operations.id"), nullable=False),
    Column("idempotency_key", Text),
    Column("provider", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("amount_nano", BigInteger, nullable=False),
    Column("is_top_up", Boolean, nullable=False),
    Column("reference", Text),
    Column("payment", Text, index=True),
    Column("checkout_url", Text),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("paid_at", Double),
    Column("ended_at", Double),
    CheckConstraint(
        "state IN ('pending', 'paid', 'failed', 'expired', 'refunded', 'disputed')", name="state"
    ),
    UniqueConstraint("account_id", "idempotency_key"),
    Index(None, "account_id", "created_at"),
    Index(None, "state", "expires_at"),
)

#: One row for each event of a provider, so that it counts once. ``waiting``: for one that comes
#: before it in the order of states. ``parked``: it disagrees, and an operator looks at it.
provider_events = Table(
    "provider_events",
    metadata,
    Column("provider", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("purchase_id", Text, index=True),
    Column("received_at", Double, nullable=False),
    Column("outcome", Text, nullable=False, index=True),
    Column("reason", Text),
    Column("notice", LargeBinary, nullable=False),
    CheckConstraint(
        "outcome IN ('applied', 'ignored', 'waiting', 'parked', 'cleared')", name="outcome"
    ),
)

#: When an account buys by itself. ``purchase_id`` is the one under way, of which there is at most
#: one; ``failures`` are those in a row, ``off_at`` when they ended it.
top_ups = Table(
    "top_ups",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("threshold_nano", BigInteger, nullable=False),
    Column("amount_nano", BigInteger, nullable=False),
    Column("monthly_cap_nano", BigInteger, nullable=False),
    Column("purchase_id", Text),
    Column("failures", Integer, nullable=False),
    Column("off_at", Double),
    Column("set_at", Double, nullable=False),
)

#: The card that an account's last paid checkout saved; the last four columns are learnt after it.
payment_methods = Table(
    "payment_methods",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("provider", Text, nullable=False),
    Column("payment", Text, nullable=False),
    Column("customer", Text),
    Column("method", Text),
    Column("brand", Text),
    Column("last4", Text),
)

referral_codes = Table(
    "referral_codes",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("code", Text, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
)

#: Who redeemed whose code; both get ``granted_nano`` when the first purchase is paid.
referrals = Table(
    "referrals",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("owner_account_id", Text, ForeignKey("accounts.id"), nullable=False, index=True),
    Column("redeemed_at", Double, nullable=False),
    Column("granted_nano", BigInteger),
    Column("granted_at", Double),
)

#: What an account's owners should hear of, until their letters are queued.
billing_events = Table(
    "billing_events",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Index(None, "account_id", "created_at"),
)
