"""Tables of webhooks, and of events to deliver."""

import sqlalchemy as sa

from steelyard.storage.tables import metadata

#: Endpoints of other programs. ``events`` are names with spaces between them. Deliveries are signed
#: with ``secret``, and with the one before it until ``old_until``: both must be readable.
webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),
    sa.Column("secret", sa.Text, nullable=False),
    sa.Column("old_secret", sa.Text),
    sa.Column("old_until", sa.Double),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("failing_since", sa.Double),
    sa.Column("disabled_at", sa.Double),
    sa.Column("disabled_reason", sa.Text),
    sa.Index(None, "account_id", "created_at"),
)

#: Events on their way to a webhook, in the order of ``number``; ``body`` is sent as it is. The opening
#: of the state that sends one is its ``runner``.
webhook_deliveries = sa.Table(
    "webhook_deliveries",
    metadata,
    sa.Column(
        "number",
        sa.BigInteger().with_variant(sa.Integer, "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column(
        "webhook_id", sa.Text, sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False
    ),
    sa.Column("event_id", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("next_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("runner", sa.Text),
    sa.Column("response_status", sa.Integer),
    sa.Column("response", sa.Text),
    sa.Column("error", sa.Text),
    sa.CheckConstraint("status IN ('waiting', 'delivered', 'failed')", name="status"),
    sa.Index(None, "webhook_id", "created_at"),
    sa.Index(None, "status", "webhook_id", "subject", "number"),
)
