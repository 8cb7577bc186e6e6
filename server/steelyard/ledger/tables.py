"""Tables of keys' monthly spending, the ledger, and its balances."""

from __future__ import annotations

import sqlalchemy as sa

from steelyard.storage.tables import metadata

_STORED = {"paid": "wallet"}
_NAMED = {stored: book for book, stored in _STORED.items()}


class BookName(sa.TypeDecorator[str]):
    """A book's name: ``paid`` is stored as ``wallet``.

    It was called that before there was promotional credit, and a host of that version shares the
    state with hosts of this one while they are upgraded.
    """

    impl = sa.Text
    cache_ok = True

    @property
    def python_type(self) -> type[str]:
        """The Python type of a book's name."""
        return str

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:  # noqa: ARG002
        """Return the name that is stored."""
        return None if value is None else _STORED.get(value, value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:  # noqa: ARG002
        """Return the book that a name stands for."""
        return None if value is None else _NAMED.get(value, value)


#: The cost of a key's accepted work, and its holds, by UTC month such as ``2026-11``.
key_months = sa.Table(
    "key_months",
    metadata,
    sa.Column("key_id", sa.Text, sa.ForeignKey("api_keys.id"), primary_key=True),
    sa.Column("month", sa.Text, primary_key=True),
    sa.Column("spent_nano", sa.BigInteger, nullable=False),
    sa.Column("held_nano", sa.BigInteger, nullable=False),
    sa.CheckConstraint("spent_nano >= 0 AND held_nano >= 0", name="not_negative"),
)

#: Double entry: an operation's entries sum to zero, and so do an account's books.
ledger_entries = sa.Table(
    "ledger_entries",
    metadata,
    sa.Column(
        "id",
        sa.BigInteger().with_variant(sa.Integer, "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    sa.Column("operation_id", sa.Text, sa.ForeignKey("operations.id"), nullable=False, index=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("book", BookName, nullable=False),
    sa.Column("amount_nano", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.CheckConstraint(
        "book IN ('wallet', 'promotional', 'held', 'revenue', 'funding', 'purchases_pending', "
        "'referral_costs', 'refunds')",
        name="book",
    ),
    sa.Index(None, "account_id", "book", "created_at"),
)

#: The sums of ``ledger_entries``, kept in the same transactions.
balances = sa.Table(
    "balances",
    metadata,
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("book", BookName, primary_key=True),
    sa.Column("amount_nano", sa.BigInteger, nullable=False),
)
