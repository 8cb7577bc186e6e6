"""Tables of webhooks, and of events to deliver."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from steelyard.storage.tables import metadata

#: Endpoints of other programs. ``events`` are names with spaces between them. Deliveries are signed
#: with ``secret``, and with the one before it until ``old_until``: both must be readable.
webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("old_secret", Text),
    Column("old_until", Double),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("failing_since", Double),
    Column("disabled_at", Double),
    Column("disabled_reason", Text),
    Index(None, "account_id", "created_at"),
)

#: Events on their way to a webhook, in the order of ``number``; ``body`` is sent as it is. The opening
#: of the state that sends one is its ``runner``.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column(
        "number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    Column("id", Text, nullable=False, unique=True),
    Column("webhook_id", Text, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("status", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("runner", Text),
    Column("response_status", Integer),
    Column("response", Text),
    Column("error", Text),
    CheckConstraint("status IN ('waiting', 'delivered', 'failed')", name="status"),
    Index(None, "webhook_id", "created_at"),
    Index(None, "status", "webhook_id", "subject", "number"),
)
