"""What keys spend by month, the ledger, and the balances that it sums to."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
)

from steelyard.storage.tables import metadata

#: What a key's accepted work cost, and what it holds, by UTC month such as ``2026-11``.
key_months = Table(
    "key_months",
    metadata,
    Column("key_id", Text, ForeignKey("api_keys.id"), primary_key=True),
    Column("month", Text, primary_key=True),
    Column("spent_nano", BigInteger, nullable=False),
    Column("held_nano", BigInteger, nullable=False),
    CheckConstraint("spent_nano >= 0 AND held_nano >= 0", name="not_negative"),
)

#: Double entry: an operation's entries sum to zero, and so do an account's books.
ledger_entries = Table(
    "ledger_entries",
    metadata,
    Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    Column("operation_id", Text, ForeignKey("operations.id"), nullable=False, index=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("book", Text, nullable=False),
    Column("amount_nano", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    CheckConstraint(
        "book IN ('paid', 'promotional', 'held', 'revenue', 'funding', 'purchases_pending', "
        "'referral_costs', 'refunds')",
        name="book",
    ),
    Index(None, "account_id", "book", "created_at"),
)

#: The sums of ``ledger_entries``, kept in the same transactions.
balances = Table(
    "balances",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("book", Text, primary_key=True),
    Column("amount_nano", BigInteger, nullable=False),
)
