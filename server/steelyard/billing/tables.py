"""Tables of purchases, providers' notices, automatic top-ups, and referrals."""

import sqlalchemy as sa

from steelyard.storage.tables import metadata

#: ``reference`` is the provider's name of the means of payment, ``payment`` of the payment
#: itself. ``operation_id`` is the operation to which everything about it is posted.
purchases = sa.Table(
    "purchases",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("operation_id", sa.Text, sa.ForeignKey("operations.id"), nullable=False),
    sa.Column("idempotency_key", sa.Text),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("amount_nano", sa.BigInteger, nullable=False),
    sa.Column("is_top_up", sa.Boolean, nullable=False),
    sa.Column("reference", sa.Text),
    sa.Column("payment", sa.Text, index=True),
    sa.Column("checkout_url", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("paid_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.CheckConstraint(
        "state IN ('pending', 'paid', 'failed', 'expired', 'refunded', 'disputed')", name="state"
    ),
    sa.UniqueConstraint("account_id", "idempotency_key"),
    sa.Index(None, "account_id", "created_at"),
    sa.Index(None, "state", "expires_at"),
)

#: One row for each event of a provider, so that it counts once. ``waiting``: for one that comes
#: before it in the order of states. ``parked``: it disagrees, and an operator looks at it.
provider_events = sa.Table(
    "provider_events",
    metadata,
    sa.Column("provider", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("purchase_id", sa.Text, index=True),
    sa.Column("received_at", sa.Double, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False, index=True),
    sa.Column("reason", sa.Text),
    sa.Column("notice", sa.LargeBinary, nullable=False),
    sa.CheckConstraint(
        "outcome IN ('applied', 'ignored', 'waiting', 'parked', 'cleared')", name="outcome"
    ),
)

#: When an account buys by itself. ``purchase_id`` is the one under way, of which there is at most
#: one; ``failures`` are those in a row, ``off_at`` when they ended it.
top_ups = sa.Table(
    "top_ups",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("threshold_nano", sa.BigInteger, nullable=False),
    sa.Column("amount_nano", sa.BigInteger, nullable=False),
    sa.Column("monthly_cap_nano", sa.BigInteger, nullable=False),
    sa.Column("purchase_id", sa.Text),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("off_at", sa.Double),
    sa.Column("set_at", sa.Double, nullable=False),
)

#: The card that an account's last paid checkout saved; the last four columns are learnt after it.
payment_methods = sa.Table(
    "payment_methods",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("payment", sa.Text, nullable=False),
    sa.Column("customer", sa.Text),
    sa.Column("method", sa.Text),
    sa.Column("brand", sa.Text),
    sa.Column("last4", sa.Text),
)

referral_codes = sa.Table(
    "referral_codes",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("code", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", sa.Double, nullable=False),
)

#: Who redeemed whose code; both get ``granted_nano`` when the first purchase is paid.
referrals = sa.Table(
    "referrals",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column(
        "owner_account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False, index=True
    ),
    sa.Column("redeemed_at", sa.Double, nullable=False),
    sa.Column("granted_nano", sa.BigInteger),
    sa.Column("granted_at", sa.Double),
)

#: What an account's owners should hear of, until their letters are queued.
billing_events = sa.Table(
    "billing_events",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Index(None, "account_id", "created_at"),
)
