"""Datasets and their versions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "datasets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double()),
        sa.Column("listed_at", sa.Double(), nullable=False),
        sa.Column("archived_at", sa.Double()),
        sa.Column("deleted_at", sa.Double()),
        sa.Column("receipt", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_datasets_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    op.create_index(
        op.f("ix_datasets_account_id_listed_at"), "datasets", ["account_id", "listed_at"]
    )
    op.create_table(
        "dataset_versions",
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("added_via", sa.Text(), nullable=False),
        sa.Column("added_from", sa.Text()),
        sa.Column("manifest", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(
            "added_via IN ('api', 'jsonl', 'csv', 'labeling')",
            name=op.f("ck_dataset_versions_added_via"),
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_versions_dataset_id")
        ),
        sa.PrimaryKeyConstraint("dataset_id", "version", name=op.f("pk_dataset_versions")),
    )


def downgrade() -> None:
    """Refuse: going back would lose what was acknowledged.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError("The state is never migrated backwards; restore a copy instead.")
