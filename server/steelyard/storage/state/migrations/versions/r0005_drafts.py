"""Drafts: reviews of versions of datasets, and the logs of their edits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "drafts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("sealed", sa.LargeBinary()),
        sa.CheckConstraint("status IN ('open', 'sealed')", name=op.f("ck_drafts_status")),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_drafts_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drafts")),
    )
    for columns in (["account_id", "created_at"], ["dataset_id"]):
        op.create_index(op.f(f"ix_drafts_{'_'.join(columns)}"), "drafts", columns)
    op.create_table(
        "draft_entries",
        sa.Column("draft_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("reviewer", sa.Text()),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("row", sa.Integer()),
        sa.Column("places", sa.LargeBinary()),
        sa.Column("target", sa.Integer()),
        sa.Column("undone", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("undone IN (0, 1, 2)", name=op.f("ck_draft_entries_undone")),
        sa.ForeignKeyConstraint(
            ["draft_id"],
            ["drafts.id"],
            name=op.f("fk_draft_entries_draft_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("draft_id", "number", name=op.f("pk_draft_entries")),
    )
    op.create_index(op.f("ix_draft_entries_draft_id_row"), "draft_entries", ["draft_id", "row"])


def downgrade() -> None:
    """Refuse: going back would lose what was acknowledged.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError("The state is never migrated backwards; restore a copy instead.")
