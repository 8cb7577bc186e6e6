"""Which versions may use a state that a newer one migrated; and the book ``paid`` as it was stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_BOOKS = (
    "book IN ('wallet', 'promotional', 'held', 'revenue', 'funding', 'purchases_pending', "
    "'referral_costs', 'refunds')"
)
_COLUMNS = "id, operation_id, account_id, book, amount_nano, created_at"


def upgrade() -> None:
    """Add the table; its one row is written after the last migration."""
    table = op.create_table("oldest_version", sa.Column("head", sa.Text, primary_key=True))
    op.bulk_insert(table, [{"head": revision}])
    checks = sa.inspect(op.get_bind()).get_check_constraints("ledger_entries")
    # Versions between two releases renamed the book, which no host of the older one survives.
    if any("'paid'" in check["sqltext"] for check in checks):
        _name_the_book_wallet()


def _name_the_book_wallet() -> None:
    op.execute("UPDATE balances SET book = 'wallet' WHERE book = 'paid'")
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(op.f("ck_ledger_entries_book"), "ledger_entries")
        op.execute("UPDATE ledger_entries SET book = 'wallet' WHERE book = 'paid'")
        op.create_check_constraint(op.f("ck_ledger_entries_book"), "ledger_entries", _BOOKS)
        return
    # SQLite cannot change a table's check: the entries move to a new one.
    for name in ("operation_id", "account_id_book_created_at"):
        op.drop_index(op.f(f"ix_ledger_entries_{name}"), "ledger_entries")
    op.rename_table("ledger_entries", "ledger_entries_before")
    op.create_table(
        "ledger_entries",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column(
            "operation_id", sa.Text, sa.ForeignKey("operations.id"), nullable=False, index=True
        ),
        sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("book", sa.Text, nullable=False),
        sa.Column("amount_nano", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.CheckConstraint(_BOOKS, name="book"),
        sa.Index(None, "account_id", "book", "created_at"),
    )
    named = _COLUMNS.replace("book", "CASE book WHEN 'paid' THEN 'wallet' ELSE book END")
    op.execute(
        f"INSERT INTO ledger_entries ({_COLUMNS}) SELECT {named} FROM ledger_entries_before"  # noqa: S608  constants
    )
    op.drop_table("ledger_entries_before")
