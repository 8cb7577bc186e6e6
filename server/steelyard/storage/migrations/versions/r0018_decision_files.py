"""Files of stored decisions, and the jobs that write them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "decision_files",
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False, index=True),
        sa.Column("last_id", sa.Text, nullable=False),
        sa.Column("least_id", sa.Text, nullable=False),
        sa.Column("greatest_id", sa.Text, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("bytes", sa.Integer, nullable=False),
        sa.Column("is_cleared", sa.Integer, nullable=False),
        sa.Index(None, "account_id", "last_at"),
    )
    op.create_table(
        "decision_archivings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("error", sa.LargeBinary),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'cancelled', 'succeeded', 'failed')",
            name="status",
        ),
        sa.UniqueConstraint("account_id", "day"),
    )
