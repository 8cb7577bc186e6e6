"""Labeling: sources, jobs, what teachers said, and the datasets that are made of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, and where a dataset says which job made it."""
    op.create_table(
        "labeling_sources",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("open_rows", sa.Integer, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("receipt", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("deleted_at", sa.Double),
        sa.Index(None, "account_id", "created_at"),
    )
    op.create_table(
        "labeling_jobs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column(
            "source_id", sa.Text, sa.ForeignKey("labeling_sources.id"), nullable=False, index=True
        ),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("teachers", sa.LargeBinary, nullable=False),
        sa.Column("decisions", sa.LargeBinary),
        sa.Column("weighting", sa.Text, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("completed_rows", sa.Integer, nullable=False),
        sa.Column("valid_rows", sa.Integer, nullable=False),
        sa.Column("agreement_rows", sa.Integer, nullable=False),
        sa.Column("error_rows", sa.Integer, nullable=False),
        sa.Column("price_nano", sa.BigInteger, nullable=False),
        sa.Column("charge", sa.Text, nullable=False),
        sa.Column("summary", sa.LargeBinary),
        sa.Column("answers_sha256", sa.Text),
        sa.Column("dataset_id", sa.Text),
        sa.Column("selection", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'cancelled', 'review_ready', 'failed', "
            "'finalized', 'discarded', 'deleted')",
            name="status",
        ),
        sa.CheckConstraint("charge IN ('free', 'reserved', 'charged', 'released')", name="charge"),
        sa.CheckConstraint("completed_rows >= 0 AND completed_rows <= rows", name="progress"),
        sa.Index(None, "account_id", "created_at"),
    )
    op.create_table(
        "labeling_parts",
        sa.Column(
            "job_id",
            sa.Text,
            sa.ForeignKey("labeling_jobs.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("sha256", sa.Text, nullable=False),
    )
    op.add_column("datasets", sa.Column("labeling", sa.LargeBinary))
