"""Jobs that set up judges and routes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_STATUSES = "('queued', 'running', 'cancelling', 'cancelled', 'succeeded', 'failed')"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "model_setups",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("dataset_id", sa.Text),
        sa.Column("dataset_version", sa.Integer),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("request", sa.LargeBinary),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.CheckConstraint(f"status IN {_STATUSES}", name="status"),
    )
    op.create_index("ix_model_setups_status", "model_setups", ["status"])
    op.create_index(
        "ix_model_setups_account_id_created_at", "model_setups", ["account_id", "created_at"]
    )
    op.create_index("ix_model_setups_name", "model_setups", ["name"])
