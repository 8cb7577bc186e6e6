"""The console: who made a key and when it ends, accounts to be deleted, what was asked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and the index that finds what was spent in a span of time."""
    op.add_column("api_keys", sa.Column("expires_at", sa.Double))
    op.add_column("api_keys", sa.Column("made_by", sa.Text))
    op.add_column("api_keys", sa.Column("role", sa.Text))
    op.add_column("accounts", sa.Column("deletes_at", sa.Double))
    op.create_index("ix_accounts_deletes_at", "accounts", ["deletes_at"])
    op.add_column("operations", sa.Column("input_tokens", sa.BigInteger))
    op.add_column("operations", sa.Column("n_decisions", sa.Integer))
    op.drop_index("ix_ledger_entries_account_id_book", "ledger_entries")
    op.create_index(
        "ix_ledger_entries_account_id_book_created_at",
        "ledger_entries",
        ["account_id", "book", "created_at"],
    )
