"""Comparisons of versions of named decisions, and the evidence of a move."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, and columns that are empty for moves made before."""
    op.create_table(
        "named_comparisons",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column(
            "named_id",
            sa.Text,
            sa.ForeignKey("named_decisions.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("dataset_id", sa.Text, index=True),
        sa.Column("dataset_version", sa.Integer),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("from_number", sa.Integer, nullable=False),
        sa.Column("to_number", sa.Integer, nullable=False),
        sa.Column("from_model_id", sa.Text, nullable=False),
        sa.Column("to_model_id", sa.Text, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("stored", sa.Integer, nullable=False),
        sa.Column("contexts", sa.Integer, nullable=False),
        sa.Column("completed_contexts", sa.Integer, nullable=False),
        sa.Column("price_nano", sa.BigInteger, nullable=False),
        sa.Column("charge", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text),
        sa.Column("progress", sa.LargeBinary),
        sa.Column("result", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'cancelled', 'succeeded', 'failed')",
            name="status",
        ),
        sa.CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
        sa.Index(None, "account_id", "created_at"),
        sa.Index(None, "named_id", "created_at"),
    )
    for name in ("comparison_id", "verdict", "overruled"):
        op.add_column("named_moves", sa.Column(name, sa.Text))
