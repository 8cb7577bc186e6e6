"""Rows of the ledger, and the balances and months kept beside it in the same transaction."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, case, func, insert, or_, select, update

from steelyard.ledger.books import Book, Posting, from_promotional
from steelyard.ledger.tables import balances, key_months, ledger_entries
from steelyard.storage.statements import Statement
from steelyard.storage.tables import api_keys

_INSERT_ENTRIES = Statement(
    insert(ledger_entries),
    ("operation_id", "account_id", "book", "amount_nano", "created_at"),
)
_BALANCES = select(balances.c.book, balances.c.amount_nano).where(
    balances.c.account_id == bindparam("account")
)
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
_PROMOTIONAL = Statement(
    select(balances.c.amount_nano).where(
        balances.c.account_id == bindparam("account"), balances.c.book == "promotional"
    )
)
_SPENDABLE = Statement(
    select(
        _AVAILABLE.scalar_subquery(),
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


def post(
    connection: Connection, posting: Posting, *, operation_id: str, account_id: str, at: float
) -> None:
    """Write a posting and add it to the balances; promotional credit is spent first."""
    if sum(posting.values()):
        raise ValueError("A posting's entries sum to zero.")
    if not posting:
        return
    if posting.get("revenue", 0) > 0:
        promotional = _PROMOTIONAL.first(connection, {"account": account_id})
        posting = from_promotional(posting, promotional[0] if promotional else 0)
    _INSERT_ENTRIES.change_each(
        connection,
        [
            {
                "operation_id": operation_id,
                "account_id": account_id,
                "book": book,
                "amount_nano": amount,
                "created_at": at,
            }
            for book, amount in posting.items()
        ],
    )
    added = {f"to_{book}": amount for book, amount in posting.items()}
    n_added = _add_to_balances(tuple(posting)).change(
        connection, {"of_account": account_id, **added}
    )
    if n_added < len(posting):
        # The first posting to a book: those that were not there are not changed yet.
        there = {row.book for row in connection.execute(_BALANCES, {"account": account_id})}
        connection.execute(
            insert(balances),
            [
                {"account_id": account_id, "book": book, "amount_nano": amount}
                for book, amount in posting.items()
                if book not in there
            ],
        )


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


def spendable(connection: Connection, account_id: str, key_id: str | None, month: str) -> Spendable:
    """Return the spendable amount of an account, and of an API key of it in a UTC month."""
    # One statement: every paid request asks.
    row = _SPENDABLE.first(connection, {"account": account_id, "key": key_id, "of": month})
    available_nano, cap_nano, used_nano = row or (None, None, None)
    left = None if cap_nano is None else cap_nano - (used_nano or 0)
    return Spendable(int(available_nano or 0), left)


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


@functools.cache
def _add_to_balances(books: tuple[Book, ...]) -> Statement:
    """Return the statement that adds ``to_BOOK`` to each book of ``of_account``, all at once."""
    book, amount = balances.c.book, balances.c.amount_nano
    added = case(*((book == name, bindparam(f"to_{name}", type_=amount.type)) for name in books))
    return Statement(
        update(balances)
        .where(balances.c.account_id == bindparam("of_account"), or_(*(book == b for b in books)))
        .values(amount_nano=amount + added)
    )
