"""The states of a purchase: the next state for each notice, and its postings.

``pending → paid | failed | expired`` and ``paid → refunded | disputed``; nothing else. Notices may
come twice, late and in any order.
"""

from __future__ import annotations

from typing import Literal

from steelyard.ledger import books as ledger
from steelyard.ledger.books import Posting

PurchaseState = Literal["pending", "paid", "failed", "expired", "refunded", "disputed"]
NoticeKind = Literal["paid", "failed", "expired", "refunded", "disputed"]
#: ``wait``: an earlier event has not come. ``park``: it contradicts the books.
Step = Literal["apply", "ignore", "wait", "park"]

#: The order in which waiting notices are applied.
ORDER: tuple[NoticeKind, ...] = ("paid", "failed", "expired", "refunded", "disputed")
_BACK = ("refunded", "disputed")
_LAPSED = ("failed", "expired")


def step(state: PurchaseState, kind: NoticeKind) -> Step:
    """Return the step that a notice causes in a purchase's state."""
    if state == kind:
        return "ignore"
    if state == "pending":
        return "wait" if kind in _BACK else "apply"
    if state == "paid":
        return "apply" if kind in _BACK else "ignore"
    if state in _LAPSED:
        # Money came, or went back, for an ended purchase: a person must look.
        return "ignore" if kind in _LAPSED else "park"
    return "park" if kind in _BACK else "ignore"


def posting(kind: NoticeKind, amount_nano: int) -> Posting:
    """Return the posting of an applied notice."""
    if kind == "paid":
        return ledger.payment(amount_nano)
    if kind in _LAPSED:
        return ledger.lapse(amount_nano)
    return ledger.refund(amount_nano)
