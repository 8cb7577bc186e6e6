"""Named decisions that grow families of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "growths",
        sa.Column(
            "named_id",
            sa.Text,
            sa.ForeignKey("named_decisions.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("key_id", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("policy", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
        sa.Column("set_by", sa.Text, nullable=False),
        sa.Column("set_at", sa.Double, nullable=False),
        sa.Column("turned_at", sa.Double, nullable=False),
        sa.Column("claimed_until", sa.Double, nullable=False),
        sa.Column("stopped_at", sa.Double),
    )
