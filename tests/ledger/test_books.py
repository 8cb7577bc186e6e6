from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.ledger import books as ledger

AMOUNTS = st.integers(0, 2**62)


@given(AMOUNTS, AMOUNTS)
def test_every_posting_sums_to_zero_and_has_no_zeros(first: int, second: int):
    amount, reserved = sorted((first, second))
    for posting in (
        ledger.credit(amount),
        ledger.hold(reserved),
        ledger.release(reserved),
        ledger.settlement(reserved, amount),
        ledger.from_promotional(ledger.settlement(reserved, reserved), amount),
        ledger.purchase(amount),
        ledger.payment(amount),
        ledger.lapse(amount),
        ledger.refund(amount),
        ledger.referral(amount),
    ):
        assert sum(posting.values()) == 0
        assert 0 not in posting.values()


@given(AMOUNTS, AMOUNTS)
def test_a_hold_ends_released_or_charged(first: int, second: int):
    amount, reserved = sorted((first, second))
    books = Counter(ledger.hold(reserved))
    books.update(ledger.release(reserved))
    assert not any(books.values())
    books = Counter(ledger.hold(reserved))
    books.update(ledger.settlement(reserved, amount))
    assert (books["paid"], books["held"], books["revenue"]) == (-amount, 0, amount)


@pytest.mark.parametrize(("reserved", "amount"), [(5, 6), (5, -1), (0, 1)])
def test_no_more_is_charged_than_was_held(reserved: int, amount: int):
    with pytest.raises(ValueError, match="held"):
        ledger.settlement(reserved, amount)


@pytest.mark.parametrize(
    ("promotional", "spent", "of_promotional"), [(10, 4, 4), (4, 10, 4), (0, 3, 0), (-5, 3, 0)]
)
def test_promotional_credit_is_spent_first(promotional: int, spent: int, of_promotional: int):
    posting = ledger.from_promotional(ledger.settlement(12, spent), promotional)
    assert posting.get("promotional", 0) == -of_promotional
    assert posting["held"] + posting["paid"] == -(spent - of_promotional)
    assert posting["revenue"] == spent
