"""Tables of keys' monthly spending, the ledger, and its balances."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    TypeDecorator,
)

from steelyard.storage.tables import metadata

_STORED = {"paid": "wallet"}
_NAMED = {stored: book for book, stored in _STORED.items()}


class BookName(TypeDecorator[str]):
    """A book's name: ``paid`` is stored as ``wallet``.

    It was called that before there was promotional credit, and a host of that version shares the
    state with hosts of this one while they are upgraded.
    """

    impl = Text
    cache_ok = True

    @property
    def python_type(self) -> type[str]:
        """The Python type of a book's name."""
        return str

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the name that is stored."""
        return None if value is None else _STORED.get(value, value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the book that a name stands for."""
        return None if value is None else _NAMED.get(value, value)


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
    Column("book", BookName, nullable=False),
    Column("amount_nano", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    CheckConstraint(
        "book IN ('wallet', 'promotional', 'held', 'revenue', 'funding', 'purchases_pending', "
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
    Column("book", BookName, primary_key=True),
    Column("amount_nano", BigInteger, nullable=False),
)
