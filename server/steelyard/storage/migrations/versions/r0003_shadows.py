"""Shadows: models that score beside families, and what they answered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "shadows",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("family", sa.Text, primary_key=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("model_id", sa.Text, nullable=False),
        sa.Column("share", sa.Double, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
    )
    op.create_table(
        "shadow_answers",
        sa.Column(
            "decision_id",
            sa.Text,
            sa.ForeignKey("decisions.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("account_id", sa.Text, nullable=False),
        sa.Column("family", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("taken_at", sa.Double, nullable=False),
        sa.Column("results", sa.LargeBinary),
        sa.Index(None, "account_id", "family", "taken_at"),
    )
