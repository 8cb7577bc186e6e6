"""Maps: jobs that lay the rows of a dataset out as points."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "dataset_maps",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("dataset_id", sa.Text, nullable=False),
        sa.Column("dataset_version", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("model_sha256", sa.Text, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("points", sa.Integer, nullable=False),
        sa.Column("progress", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.Column("result_sha256", sa.Text),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'cancelled', 'succeeded', 'failed')",
            name="status",
        ),
        sa.UniqueConstraint("dataset_id", "dataset_version", "model_sha256"),
        sa.Index(None, "account_id", "created_at"),
    )
