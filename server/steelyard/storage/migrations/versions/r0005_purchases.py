"""Purchases: what was paid in by whom, and books that tell paid from promotional credit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_BOOKS = (
    "book IN ('wallet', 'promotional', 'held', 'revenue', 'funding', 'purchases_pending', "
    "'referral_costs', 'refunds')"
)
_COLUMNS = "id, operation_id, account_id, book, amount_nano, created_at"


def upgrade() -> None:
    """Allow the new books, and add the tables."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(op.f("ck_ledger_entries_book"), "ledger_entries")
        op.create_check_constraint(op.f("ck_ledger_entries_book"), "ledger_entries", _BOOKS)
    else:
        _make_ledger_anew()
    _add_purchases()
    _add_referrals()


def _make_ledger_anew() -> None:
    """SQLite cannot change a table's check: the entries move to a new one."""
    op.drop_index(op.f("ix_ledger_entries_operation_id"), "ledger_entries")
    op.drop_index(op.f("ix_ledger_entries_account_id_book"), "ledger_entries")
    op.rename_table("ledger_entries", "ledger_entries_before")
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
        sa.CheckConstraint(_BOOKS, name="book"),
        sa.Index(None, "account_id", "book"),
    )
    op.execute(
        f"INSERT INTO ledger_entries ({_COLUMNS}) SELECT {_COLUMNS} FROM ledger_entries_before"  # noqa: S608  constants
    )
    op.drop_table("ledger_entries_before")


def _add_purchases() -> None:
    op.create_table(
        "purchases",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("operation_id", sa.Text, sa.ForeignKey("operations.id"), nullable=False),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("amount_nano", sa.BigInteger, nullable=False),
        sa.Column("is_top_up", sa.Boolean, nullable=False),
        sa.Column("reference", sa.Text),
        sa.Column("payment", sa.Text, index=True),
        sa.Column("checkout_url", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("paid_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.CheckConstraint(
            "state IN ('pending', 'paid', 'failed', 'expired', 'refunded', 'disputed')",
            name="state",
        ),
        sa.UniqueConstraint("account_id", "idempotency_key"),
        sa.Index(None, "account_id", "created_at"),
        sa.Index(None, "state", "expires_at"),
    )
    op.create_table(
        "provider_events",
        sa.Column("provider", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("purchase_id", sa.Text, index=True),
        sa.Column("received_at", sa.Double, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False, index=True),
        sa.Column("reason", sa.Text),
        sa.Column("notice", sa.LargeBinary, nullable=False),
        sa.CheckConstraint(
            "outcome IN ('applied', 'ignored', 'waiting', 'parked', 'cleared')", name="outcome"
        ),
    )
    op.create_table(
        "top_ups",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("threshold_nano", sa.BigInteger, nullable=False),
        sa.Column("amount_nano", sa.BigInteger, nullable=False),
        sa.Column("monthly_cap_nano", sa.BigInteger, nullable=False),
        sa.Column("purchase_id", sa.Text),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("off_at", sa.Double),
        sa.Column("set_at", sa.Double, nullable=False),
    )
    op.create_table(
        "payment_methods",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("payment", sa.Text, nullable=False),
        sa.Column("customer", sa.Text),
        sa.Column("method", sa.Text),
        sa.Column("brand", sa.Text),
        sa.Column("last4", sa.Text),
    )


def _add_referrals() -> None:
    op.create_table(
        "referral_codes",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("code", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "referrals",
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column(
            "owner_account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False, index=True
        ),
        sa.Column("redeemed_at", sa.Double, nullable=False),
        sa.Column("granted_nano", sa.BigInteger),
        sa.Column("granted_at", sa.Double),
    )
    op.create_table(
        "billing_events",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Index(None, "account_id", "created_at"),
    )
