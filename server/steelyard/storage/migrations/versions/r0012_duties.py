"""Who is to label which rows of drafts, and what two said of a row apart."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "draft_duties",
        sa.Column(
            "draft_id", sa.Text, sa.ForeignKey("drafts.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("places", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.CheckConstraint("action IN ('assign', 'drop', 'answer')", name="action"),
    )
