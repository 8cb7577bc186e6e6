"""The first tables, and the account that everything belongs to where accounts are off.

Names of constraints and indexes come from the naming convention of ``steelyard.storage.tables``.
"""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and the first account."""
    op.create_table(
        "accounts",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False, index=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("prefix", sa.Text, nullable=False, unique=True),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("monthly_cap_nano", sa.BigInteger),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("last_used_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
        sa.CheckConstraint("scope IN ('full', 'inference', 'read')", name="scope"),
    )
    op.create_table(
        "key_months",
        sa.Column("key_id", sa.Text, sa.ForeignKey("api_keys.id"), primary_key=True),
        sa.Column("month", sa.Text, primary_key=True),
        sa.Column("spent_nano", sa.BigInteger, nullable=False),
        sa.Column("held_nano", sa.BigInteger, nullable=False),
        sa.CheckConstraint("spent_nano >= 0 AND held_nano >= 0", name="not_negative"),
    )
    op.create_table(
        "operations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("key_id", sa.Text, sa.ForeignKey("api_keys.id")),
        sa.Column("route", sa.Text, nullable=False),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("instance", sa.Text),
        sa.Column("lease_until", sa.Double),
        sa.Column("accepted_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("reserved_nano", sa.BigInteger, nullable=False),
        sa.Column("amount_nano", sa.BigInteger, nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'succeeded', 'failed', 'released', 'credit')", name="state"
        ),
        sa.Index(None, "state", "accepted_at"),
    )
    op.create_table(
        "ledger_entries",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column(
            "operation_id", sa.Text, sa.ForeignKey("operations.id"), nullable=False, index=True
        ),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("book", sa.Text, nullable=False),
        sa.Column("amount_nano", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.CheckConstraint("book IN ('wallet', 'held', 'revenue', 'funding')", name="book"),
        sa.Index(None, "account_id", "book"),
    )
    op.create_table(
        "balances",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("book", sa.Text, primary_key=True),
        sa.Column("amount_nano", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("route", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("payload_sha256", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("operation_id", sa.Text),
        sa.Column("body", sa.LargeBinary),
        sa.Column("replay_until", sa.Double),
        sa.Column("forget_at", sa.Double, nullable=False),
        sa.CheckConstraint("state IN ('pending', 'succeeded', 'failed')", name="state"),
        sa.Index(None, "replay_until"),
        sa.Index(None, "forget_at"),
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False, index=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("version", sa.Text),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("results", sa.LargeBinary, nullable=False),
        sa.Column("outcome_names", sa.LargeBinary, nullable=False),
        sa.Column("metadata", sa.LargeBinary),
        sa.Column("total_ms", sa.Double),
        sa.Index(None, "account_id", "created_at"),
    )
    op.create_table(
        "feedback",
        sa.Column(
            "decision_id",
            sa.Text,
            sa.ForeignKey("decisions.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("outcome", sa.LargeBinary, nullable=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("used_at", sa.Double),
        sa.Column("listed_at", sa.Double, nullable=False),
        sa.Column("archived_at", sa.Double),
        sa.Column("deleted_at", sa.Double),
        sa.Column("receipt", sa.LargeBinary),
        sa.Index(None, "account_id", "listed_at"),
    )
    op.create_table(
        "dataset_versions",
        sa.Column("dataset_id", sa.Text, sa.ForeignKey("datasets.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("added_via", sa.Text, nullable=False),
        sa.Column("added_from", sa.Text),
        sa.Column("manifest", sa.LargeBinary, nullable=False),
        sa.CheckConstraint("added_via IN ('api', 'jsonl', 'csv', 'labeling')", name="added_via"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("dataset_id", sa.Text, nullable=False),
        sa.Column("dataset_version", sa.Integer, nullable=False),
        sa.Column("dataset_sha256", sa.Text, nullable=False),
        sa.Column("evaluation_sha256", sa.Text, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("model_id", sa.Text, nullable=False),
        sa.Column("model_sha256", sa.Text, nullable=False),
        sa.Column("model_label", sa.Text, nullable=False),
        sa.Column("model_name", sa.Text),
        sa.Column("version", sa.Integer),
        sa.Column("named", sa.Text),
        sa.Column("training_job_id", sa.Text),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("evaluation_rows", sa.Integer, nullable=False),
        sa.Column("completed_rows", sa.Integer, nullable=False),
        sa.Column("decisions", sa.Integer, nullable=False),
        sa.Column("metrics", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.Column("predictions_sha256", sa.Text),
        sa.Column("detail_sha256", sa.Text),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
            name="status",
        ),
        sa.CheckConstraint(
            "completed_rows >= 0 AND completed_rows <= evaluation_rows", name="progress"
        ),
        sa.Index(None, "account_id", "dataset_id", "created_at"),
    )
    op.create_table(
        "evaluation_parts",
        sa.Column(
            "evaluation_id",
            sa.Text,
            sa.ForeignKey("evaluations.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
    )
    op.create_table(
        "account_lines",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("n_windows", sa.Integer, nullable=False),
    )
    op.create_table(
        "families",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("dataset_id", sa.Text, nullable=False, index=True),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("deleted_at", sa.Double),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "tuned_models",
        sa.Column("adapter", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("family", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.CheckConstraint("status IN ('ready', 'deleted', 'discarded')", name="status"),
        sa.UniqueConstraint("account_id", "family", "version"),
    )
    op.create_table(
        "fine_tunes",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("family", sa.Text, nullable=False),
        sa.Column("dataset_id", sa.Text, nullable=False, index=True),
        sa.Column("dataset_version", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("runner", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("progress", sa.LargeBinary),
        sa.Column("curve", sa.LargeBinary),
        sa.Column("artifact_sha256", sa.Text),
        sa.Column("records_sha256", sa.Text),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')",
            name="status",
        ),
        sa.Index(None, "account_id", "created_at"),
    )
    op.create_table(
        "fine_tune_events",
        sa.Column("job_id", sa.Text, sa.ForeignKey("fine_tunes.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
    )
    op.create_table(
        "keep_warm_windows",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("adapter", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("ends_at", sa.Double, nullable=False),
        sa.Column("reserved_nano", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "drafts",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("dataset_id", sa.Text, nullable=False, index=True),
        sa.Column("dataset_version", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("sealed", sa.LargeBinary),
        sa.CheckConstraint("status IN ('open', 'sealed')", name="status"),
        sa.Index(None, "account_id", "created_at"),
    )
    op.create_table(
        "draft_entries",
        sa.Column(
            "draft_id", sa.Text, sa.ForeignKey("drafts.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("reviewer", sa.Text),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("row", sa.Integer),
        sa.Column("places", sa.LargeBinary),
        sa.Column("target", sa.Integer),
        sa.Column("undone", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.CheckConstraint("undone IN (0, 1, 2)", name="undone"),
        sa.Index(None, "draft_id", "row"),
    )
    accounts = sa.table("accounts", sa.column("id"), sa.column("name"), sa.column("created_at"))
    op.bulk_insert(accounts, [{"id": "local", "name": "local", "created_at": time.time()}])


def downgrade() -> None:
    """Refuse: going back would lose what was acknowledged."""
    raise NotImplementedError("The state is never migrated backwards; restore a copy instead.")
