"""Files of rows that workers answer in partitions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "bulk_runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("asked", sa.LargeBinary, nullable=False),
        sa.Column("model_id", sa.Text),
        sa.Column("model_sha256", sa.Text),
        sa.Column("error", sa.LargeBinary),
    )
    op.create_table(
        "bulk_partitions",
        sa.Column(
            "run_id",
            sa.Text,
            sa.ForeignKey("bulk_runs.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("input_sha256", sa.Text, nullable=False),
        sa.Column("output_sha256", sa.Text),
    )
