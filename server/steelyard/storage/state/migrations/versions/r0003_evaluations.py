"""Evaluations, and the parts in which their predictions are kept while they run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("dataset_sha256", sa.Text(), nullable=False),
        sa.Column("evaluation_sha256", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("model_sha256", sa.Text(), nullable=False),
        sa.Column("model_label", sa.Text(), nullable=False),
        sa.Column("model_name", sa.Text()),
        sa.Column("version", sa.Integer()),
        sa.Column("named", sa.Text()),
        sa.Column("training_job_id", sa.Text()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("runner", sa.Text()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("evaluation_rows", sa.Integer(), nullable=False),
        sa.Column("completed_rows", sa.Integer(), nullable=False),
        sa.Column("decisions", sa.Integer(), nullable=False),
        sa.Column("metrics", sa.LargeBinary()),
        sa.Column("error", sa.LargeBinary()),
        sa.Column("predictions_sha256", sa.Text()),
        sa.Column("detail_sha256", sa.Text()),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_evaluations_status"),
        ),
        sa.CheckConstraint(
            "completed_rows >= 0 AND completed_rows <= evaluation_rows",
            name=op.f("ck_evaluations_progress"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_evaluations_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
    )
    op.create_index(
        op.f("ix_evaluations_account_id_dataset_id_created_at"),
        "evaluations",
        ["account_id", "dataset_id", "created_at"],
    )
    op.create_index(op.f("ix_evaluations_status"), "evaluations", ["status"])
    op.create_table(
        "evaluation_parts",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_evaluation_parts_evaluation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "number", name=op.f("pk_evaluation_parts")),
    )


def downgrade() -> None:
    """Refuse: going back would lose what was acknowledged.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError("The state is never migrated backwards; restore a copy instead.")
