"""Partitions of large evaluations, which workers score beside each other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, and which partition a part is of; what waits from before has one alone."""
    op.create_table(
        "evaluation_partitions",
        sa.Column(
            "evaluation_id",
            sa.Text,
            sa.ForeignKey("evaluations.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("sha256", sa.Text),
    )
    op.add_column("evaluation_parts", sa.Column("partition", sa.Integer))
