"""Webhooks, and what is to be delivered to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "webhooks",
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
    op.create_table(
        "webhook_deliveries",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column(
            "webhook_id",
            sa.Text,
            sa.ForeignKey("webhooks.id", ondelete="CASCADE"),
            nullable=False,
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
