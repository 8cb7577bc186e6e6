"""Shares of a named decision's requests that another alias answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "named_shares",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column(
            "named_id",
            sa.Text,
            sa.ForeignKey("named_decisions.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("alias", sa.Text, nullable=False),
        sa.Column("to_alias", sa.Text, nullable=False),
        sa.Column("from_number", sa.Integer, nullable=False),
        sa.Column("to_number", sa.Integer, nullable=False),
        sa.Column("share", sa.Double, nullable=False),
        sa.Column("started_by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("ended_by", sa.Text),
        sa.Column("ended_reason", sa.Text),
        sa.Column("figures", sa.LargeBinary),
        sa.Index(None, "named_id", "created_at"),
    )
