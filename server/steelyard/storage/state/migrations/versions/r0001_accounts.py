"""The first tables: accounts and keys, operations and the ledger, decisions and feedback."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and the account that everything belongs to where accounts are off."""
    op.create_table(
        "accounts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("name", name=op.f("uq_accounts_name")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("monthly_cap_nano", sa.BigInteger()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_used_at", sa.Double()),
        sa.Column("revoked_at", sa.Double()),
        sa.CheckConstraint(
            "scope IN ('full', 'inference', 'read')", name=op.f("ck_api_keys_scope")
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_api_keys_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_keys_prefix")),
    )
    op.create_index(op.f("ix_api_keys_account_id"), "api_keys", ["account_id"])
    op.create_table(
        "balances",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("book", sa.Text(), nullable=False),
        sa.Column("amount_nano", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_balances_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", "book", name=op.f("pk_balances")),
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("version", sa.Text()),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("results", sa.LargeBinary(), nullable=False),
        sa.Column("outcome_names", sa.LargeBinary(), nullable=False),
        sa.Column("metadata", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_decisions_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index(op.f("ix_decisions_created_at"), "decisions", ["created_at"])
    op.create_table(
        "idempotency_keys",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("payload_sha256", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("operation_id", sa.Text()),
        sa.Column("body", sa.LargeBinary()),
        sa.Column("replay_until", sa.Double()),
        sa.Column("forget_at", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'succeeded', 'failed')", name=op.f("ck_idempotency_keys_state")
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_idempotency_keys_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", "route", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_forget_at"), "idempotency_keys", ["forget_at"])
    op.create_index(op.f("ix_idempotency_keys_replay_until"), "idempotency_keys", ["replay_until"])
    op.create_table(
        "feedback",
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("outcome", sa.LargeBinary(), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["decision_id"],
            ["decisions.id"],
            name=op.f("fk_feedback_decision_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("decision_id", "name", name=op.f("pk_feedback")),
    )
    op.create_table(
        "key_months",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("spent_nano", sa.BigInteger(), nullable=False),
        sa.Column("held_nano", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "spent_nano >= 0 AND held_nano >= 0", name=op.f("ck_key_months_not_negative")
        ),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name=op.f("fk_key_months_key_id")),
        sa.PrimaryKeyConstraint("key_id", "month", name=op.f("pk_key_months")),
    )
    op.create_table(
        "operations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text()),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("instance", sa.Text()),
        sa.Column("lease_until", sa.Double()),
        sa.Column("accepted_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double()),
        sa.Column("reserved_nano", sa.BigInteger(), nullable=False),
        sa.Column("amount_nano", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'succeeded', 'failed', 'released', 'credit')",
            name=op.f("ck_operations_state"),
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_operations_account_id")
        ),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name=op.f("fk_operations_key_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operations")),
    )
    op.create_index(op.f("ix_operations_state_accepted_at"), "operations", ["state", "accepted_at"])
    op.create_table(
        "ledger_entries",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("book", sa.Text(), nullable=False),
        sa.Column("amount_nano", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "book IN ('wallet', 'held', 'revenue', 'funding')", name=op.f("ck_ledger_entries_book")
        ),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_ledger_entries_account_id")
        ),
        sa.ForeignKeyConstraint(
            ["operation_id"], ["operations.id"], name=op.f("fk_ledger_entries_operation_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_entries")),
    )
    op.create_index(
        op.f("ix_ledger_entries_account_id_book"), "ledger_entries", ["account_id", "book"]
    )
    op.create_index(op.f("ix_ledger_entries_operation_id"), "ledger_entries", ["operation_id"])
    accounts = sa.table("accounts", sa.column("id"), sa.column("name"), sa.column("created_at"))
    op.bulk_insert(accounts, [{"id": "local", "name": "local", "created_at": time.time()}])


def downgrade() -> None:
    """Refuse: going back would lose what was acknowledged.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError("The state is never migrated backwards; restore a copy instead.")
