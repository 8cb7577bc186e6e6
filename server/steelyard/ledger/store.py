"""Rows of the ledger, and the balances and months kept beside it in the same transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, or_, select, text, update

from steelyard.ledger.books import Book, Posting, from_promotional
from steelyard.ledger.tables import balances, key_months, ledger_entries
from steelyard.storage.statements import Call, Statement, Values, run_all
from steelyard.storage.tables import api_keys

_INSERT_ENTRIES = Statement(
    insert(ledger_entries),
    ("operation_id", "account_id", "book", "amount_nano", "created_at"),
)
_ADD_TO_BALANCES = Statement(
    text(
        "INSERT INTO balances (account_id, book, amount_nano) VALUES (:account, :book, :amount) "
        "ON CONFLICT (account_id, book) DO UPDATE "
        "SET amount_nano = balances.amount_nano + excluded.amount_nano"
    ).bindparams(
        bindparam("account", type_=balances.c.account_id.type),
        bindparam("book", type_=balances.c.book.type),
        bindparam("amount", type_=balances.c.amount_nano.type),
    )
)
_BALANCES = select(balances.c.book, balances.c.amount_nano).where(
    balances.c.account_id == bindparam("account")
)
_NEW_MONTH = Statement(insert(key_months), key_months.c.keys())
_ADD_TO_MONTH = Statement(
    update(key_months)
    .where(key_months.c.key_id == bindparam("key"), key_months.c.month == bindparam("of"))
    .values(
        spent_nano=key_months.c.spent_nano + bindparam("spent"),
        held_nano=key_months.c.held_nano + bindparam("held"),
    )
)
_AVAILABLE = select(func.sum(balances.c.amount_nano)).where(
    balances.c.account_id == bindparam("account"),
    or_(balances.c.book == "paid", balances.c.book == "promotional"),
)
_PROMOTIONAL = select(balances.c.amount_nano).where(
    balances.c.account_id == bindparam("account"), balances.c.book == "promotional"
)
_SPENDABLE = Statement(
    select(
        _AVAILABLE.scalar_subquery(),
        _PROMOTIONAL.scalar_subquery(),
        select(api_keys.c.monthly_cap_nano)
        .where(api_keys.c.id == bindparam("key"))
        .scalar_subquery(),
        select(key_months.c.spent_nano + key_months.c.held_nano)
        .where(key_months.c.key_id == bindparam("key"), key_months.c.month == bindparam("of"))
        .scalar_subquery(),
    )
)


@dataclass(frozen=True, slots=True)
class Spendable:
    """The remaining spendable amount, in nano-USD."""

    available_nano: int
    left_of_cap_nano: int | None


class Whose(NamedTuple):
    """An account, a key of it, and the UTC month that counts for the key's cap."""

    account_id: str
    key_id: str | None = None
    month: str = ""


class Spending:
    """The credit of accounts and the caps of keys during several writes, and the ledger's rows for them."""

    def __init__(self) -> None:
        #: What is available by account, and which part of it is promotional.
        self._available: dict[str, int] = {}
        self._promotional: dict[str, int] = {}
        #: What is left of the cap of a key in a month; ``None`` where it has no cap.
        self._left: dict[tuple[str, str], int | None] = {}
        self._new_months: list[Values] = []
        self._entries: list[Values] = []
        self._to_books: Counter[tuple[str, Book]] = Counter()
        self._spent: Counter[tuple[str, str]] = Counter()
        self._held: Counter[tuple[str, str]] = Counter()

    @staticmethod
    def call(whose: Whose) -> Call:
        """Return the statement whose rows ``load`` takes."""
        return _SPENDABLE, {"account": whose.account_id, "key": whose.key_id, "of": whose.month}

    def read(self, connection: Connection, whose: Whose) -> None:
        """Read the balances of an account and a key from the state."""
        [outcome] = run_all(connection, [self.call(whose)])
        assert outcome.row is not None  # noqa: S101  it selects values
        self.load(whose, outcome.row)

    def load(self, whose: Whose, row: Sequence[Any]) -> None:
        """Take over the balances of an account and a key from the state."""
        available, promotional, cap, used = row
        # A sum of PostgreSQL's is a decimal.
        self._available[whose.account_id] = int(available or 0)
        self._promotional[whose.account_id] = promotional or 0
        if whose.key_id is not None:
            month = (whose.key_id, whose.month)
            self._left[month] = None if cap is None else cap - (used or 0)
            if used is None:
                empty = {"spent_nano": 0, "held_nano": 0}
                self._new_months.append({"key_id": month[0], "month": month[1], **empty})

    def left(self, whose: Whose) -> Spendable:
        """Return the amounts that an account, and a key of it in a month, can spend."""
        left_of_cap = None if whose.key_id is None else self._left[whose.key_id, whose.month]
        return Spendable(self._available[whose.account_id], left_of_cap)

    def post(self, posting: Posting, *, operation_id: str, account_id: str, at: float) -> None:
        """Add a posting; promotional credit is spent first."""
        if sum(posting.values()):
            raise ValueError("A posting's entries sum to zero.")
        if posting.get("revenue", 0) > 0:
            posting = from_promotional(posting, self._promotional[account_id])
            self._promotional[account_id] += posting.get("promotional", 0)
        for book, amount in posting.items():
            self._to_books[account_id, book] += amount
            self._entries.append(
                {
                    "operation_id": operation_id,
                    "account_id": account_id,
                    "book": book,
                    "amount_nano": amount,
                    "created_at": at,
                }
            )
        if account_id in self._available:
            available = posting.get("paid", 0) + posting.get("promotional", 0)
            self._available[account_id] += available

    def count(self, whose: Whose, *, spent_nano: int = 0, held_nano: int = 0) -> None:
        """Add to the spent and reserved amounts of a key in a month; either may be negative."""
        if whose.key_id is None:
            return
        month = (whose.key_id, whose.month)
        self._spent[month] += spent_nano
        self._held[month] += held_nano
        left = self._left[month]
        if left is not None:
            self._left[month] = left - spent_nano - held_nano

    def write(self, connection: Connection) -> None:
        """Write the postings, and add them up in balances and months."""
        _INSERT_ENTRIES.change_each(connection, self._entries)
        _ADD_TO_BALANCES.change_each(
            connection,
            [
                {"account": account_id, "book": book, "amount": amount}
                for (account_id, book), amount in self._to_books.items()
            ],
        )
        _NEW_MONTH.change_each(connection, self._new_months)
        _ADD_TO_MONTH.change_each(
            connection,
            [
                {"key": month[0], "of": month[1], "spent": spent, "held": self._held[month]}
                for month, spent in self._spent.items()
            ],
        )


def post(
    connection: Connection, posting: Posting, *, operation_id: str, account_id: str, at: float
) -> None:
    """Write a posting and add it to the balances; promotional credit is spent first."""
    spending = Spending()
    if posting.get("revenue", 0) > 0:
        spending.read(connection, Whose(account_id))
    spending.post(posting, operation_id=operation_id, account_id=account_id, at=at)
    spending.write(connection)


def balances_of(connection: Connection, account_id: str) -> Counter[str]:
    """Return an account's balances in nano-USD by book; 0 where nothing was posted."""
    counts = Counter({"paid": 0, "held": 0, "revenue": 0, "funding": 0})
    for row in connection.execute(_BALANCES, {"account": account_id}):
        counts[row.book] = row.amount_nano
    return counts


def available(connection: Connection, account_id: str) -> int:
    """Return an account's spendable amount now, in nano-USD; negative where it owes."""
    # A sum of PostgreSQL's is a decimal.
    return int(connection.execute(_AVAILABLE, {"account": account_id}).scalar() or 0)


def spendable(connection: Connection, whose: Whose) -> Spendable:
    """Return the amounts that an account, and a key of it in a month, can spend."""
    spending = Spending()
    spending.read(connection, whose)
    return spending.left(whose)


def add_to_month(
    connection: Connection, key_id: str, month: str, *, spent_nano: int = 0, held_nano: int = 0
) -> None:
    """Add to a key's spending and holds in a UTC month; either may be negative."""
    if spent_nano == held_nano == 0:
        return
    changes = {"spent": spent_nano, "held": held_nano}
    if _ADD_TO_MONTH.change(connection, {"key": key_id, "of": month, **changes}) == 0:
        connection.execute(
            insert(key_months),
            {"key_id": key_id, "month": month, "spent_nano": spent_nano, "held_nano": held_nano},
        )


def spent_by_key(connection: Connection, key_ids: list[str], month: str) -> dict[str, int]:
    """Return the spending of keys in a UTC month, in nano-USD; keys without any may be absent."""
    rows = connection.execute(
        select(key_months.c.key_id, key_months.c.spent_nano).where(
            key_months.c.key_id.in_(key_ids), key_months.c.month == month
        )
    )
    return {row.key_id: row.spent_nano for row in rows}
