"""Prompt tuning: jobs that rewrite a decision's wording."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "prompt_tunings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("dataset_id", sa.Text, nullable=False, index=True),
        sa.Column("dataset_version", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("model_id", sa.Text, nullable=False),
        sa.Column("model_sha256", sa.Text, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        sa.Column("effort", sa.Text, nullable=False),
        sa.Column("price_nano", sa.BigInteger, nullable=False),
        sa.Column("charge", sa.Text, nullable=False),
        sa.Column("search", sa.LargeBinary),
        sa.Column("result", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.Column("dismissed_at", sa.Double),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'cancelled', 'succeeded', 'failed')",
            name="status",
        ),
        sa.CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
        sa.CheckConstraint("effort IN ('standard', 'thorough')", name="effort"),
        sa.Index(None, "account_id", "created_at"),
    )
