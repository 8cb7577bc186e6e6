"""Double entry: the postings of paid work and of purchases in an account's books.

An account has ``paid``, credit that was paid for, less the holds of work in progress (negative: its
debt, or holds that promotional credit will cover), ``promotional``, credit that was given, and
``held``, the most that work in progress may cost. Where it went: ``revenue``, spent money, and
``refunds``, money paid back. Where it came from, negative: ``funding``, money paid in or to be, and
``referral_costs``. An unpaid purchase stands in ``purchases_pending``. Each posting sums to zero, so
the books always do.
"""

from __future__ import annotations

import functools
import time
from typing import Literal

Book = Literal[
    "paid",
    "promotional",
    "held",
    "revenue",
    "funding",
    "purchases_pending",
    "referral_costs",
    "refunds",
]

#: Amounts by book in nano-USD; they sum to zero, and none is zero.
Posting = dict[Book, int]


def credit(amount_nano: int) -> Posting:
    """Return the posting of money paid in."""
    return _posting({"funding": -amount_nano, "paid": amount_nano})


def hold(reserved_nano: int) -> Posting:
    """Return the posting of work that is accepted and may cost so much at most."""
    return _posting({"paid": -reserved_nano, "held": reserved_nano})


def release(reserved_nano: int) -> Posting:
    """Return the posting of work that ended without an answer: nothing is charged."""
    return _posting({"held": -reserved_nano, "paid": reserved_nano})


def settlement(reserved_nano: int, amount_nano: int) -> Posting:
    """Return the posting of work that is done: its cost is charged, the rest of the hold freed.

    All of it is charged to ``paid``; ``from_promotional`` moves the part that promotional credit covers.
    """
    if not 0 <= amount_nano <= reserved_nano:
        raise ValueError(
            f"A charge of {amount_nano} nano-USD is not within 0 and the {reserved_nano} held."
        )
    return _posting(
        {"held": -reserved_nano, "paid": reserved_nano - amount_nano, "revenue": amount_nano}
    )


def from_promotional(posting: Posting, promotional_nano: int) -> Posting:
    """Return a posting of spent money that takes promotional credit first."""
    covered = min(max(promotional_nano, 0), posting.get("revenue", 0))
    if covered <= 0:
        return posting
    return _posting({**posting, "paid": posting.get("paid", 0) + covered, "promotional": -covered})


def purchase(amount_nano: int) -> Posting:
    """Return the posting of a purchase that is not paid yet."""
    return _posting({"funding": -amount_nano, "purchases_pending": amount_nano})


def payment(amount_nano: int) -> Posting:
    """Return the posting of a pending purchase that its provider says is paid."""
    return _posting({"purchases_pending": -amount_nano, "paid": amount_nano})


def lapse(amount_nano: int) -> Posting:
    """Return the posting of a pending purchase that will not be paid."""
    return _posting({"purchases_pending": -amount_nano, "funding": amount_nano})


def refund(amount_nano: int) -> Posting:
    """Return the posting of a refunded purchase; the spent part becomes a debt."""
    return _posting({"paid": -amount_nano, "refunds": amount_nano})


def referral(amount_nano: int) -> Posting:
    """Return the posting of credit given for a referral."""
    return _posting({"referral_costs": -amount_nano, "promotional": amount_nano})


def _posting(entries: Posting) -> Posting:
    return {book: amount for book, amount in entries.items() if amount}


def utc_month(at: float) -> str:
    """Return the month of a time in Unix seconds."""
    return _month_of_day(int(at // 86_400))


@functools.lru_cache(maxsize=64)
def _month_of_day(day: int) -> str:
    return time.strftime("%Y-%m", time.gmtime(day * 86_400))
