"""Double entry: what each step of paid work posts to an account's books.

Every account has four books. ``wallet``: what it may spend (negative: what it owes). ``held``: what
work in progress may cost at most. ``revenue``: what it spent. ``funding``: what was paid in,
negative. Each posting sums to zero, so the four always do.
"""

from __future__ import annotations

import time
from typing import Literal

Book = Literal["wallet", "held", "revenue", "funding"]

#: Amounts by book in nano-USD; they sum to zero, and none is zero.
Posting = dict[Book, int]


def credit(amount_nano: int) -> Posting:
    """Return the posting of money paid in."""
    return _posting({"funding": -amount_nano, "wallet": amount_nano})


def hold(reserved_nano: int) -> Posting:
    """Return the posting of work that is accepted and may cost so much at most."""
    return _posting({"wallet": -reserved_nano, "held": reserved_nano})


def release(reserved_nano: int) -> Posting:
    """Return the posting of work that ended without an answer: nothing is charged."""
    return _posting({"held": -reserved_nano, "wallet": reserved_nano})


def settlement(reserved_nano: int, amount_nano: int) -> Posting:
    """Return the posting of work that is done: its cost is charged, the rest of the hold freed."""
    if not 0 <= amount_nano <= reserved_nano:
        raise ValueError(
            f"A charge of {amount_nano} nano-USD is not within 0 and the {reserved_nano} held."
        )
    return _posting(
        {"held": -reserved_nano, "wallet": reserved_nano - amount_nano, "revenue": amount_nano}
    )


def _posting(entries: Posting) -> Posting:
    return {book: amount for book, amount in entries.items() if amount}


def utc_month(at: float) -> str:
    """Return the month of a time in Unix seconds."""
    return time.strftime("%Y-%m", time.gmtime(at))
