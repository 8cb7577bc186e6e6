"""Families, their models, fine-tunes with their events, and the hours of keep warm."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "account_lines",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("n_windows", sa.Integer(), nullable=False),
        _of_account("account_lines"),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_account_lines")),
    )
    op.create_table(
        "families",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("deleted_at", sa.Double()),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        _of_account("families"),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("pk_families")),
    )
    op.create_index(op.f("ix_families_dataset_id"), "families", ["dataset_id"])
    op.create_table(
        "tuned_models",
        sa.Column("adapter", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(
            "status IN ('ready', 'deleted', 'discarded')", name=op.f("ck_tuned_models_status")
        ),
        _of_account("tuned_models"),
        sa.PrimaryKeyConstraint("adapter", name=op.f("pk_tuned_models")),
        sa.UniqueConstraint(
            "account_id",
            "family",
            "version",
            name=op.f("uq_tuned_models_account_id_family_version"),
        ),
    )
    op.create_table(
        "fine_tunes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("runner", sa.Text()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("progress", sa.LargeBinary()),
        sa.Column("curve", sa.LargeBinary()),
        sa.Column("artifact_sha256", sa.Text()),
        sa.Column("records_sha256", sa.Text()),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_fine_tunes_status"),
        ),
        _of_account("fine_tunes"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fine_tunes")),
    )
    for columns in (["account_id", "created_at"], ["dataset_id"], ["status"]):
        op.create_index(op.f(f"ix_fine_tunes_{'_'.join(columns)}"), "fine_tunes", columns)
    op.create_table(
        "fine_tune_events",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["fine_tunes.id"], name=op.f("fk_fine_tune_events_job_id")
        ),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_fine_tune_events")),
    )
    op.create_table(
        "keep_warm_windows",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("adapter", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("reserved_nano", sa.BigInteger(), nullable=False),
        _of_account("keep_warm_windows"),
        sa.PrimaryKeyConstraint("account_id", "adapter", name=op.f("pk_keep_warm_windows")),
    )


def downgrade() -> None:
    """Refuse: going back would lose what was acknowledged.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError("The state is never migrated backwards; restore a copy instead.")


def _of_account(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["account_id"], ["accounts.id"], name=op.f(f"fk_{table}_account_id")
    )
