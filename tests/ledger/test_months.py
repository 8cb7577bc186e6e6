from __future__ import annotations

import pytest

from steelyard.ledger.books import utc_month


@pytest.mark.parametrize(
    ("at", "month"), [(0, "1970-01"), (1_796_083_199.9, "2026-11"), (1_796_083_200, "2026-12")]
)
def test_months_end_at_midnight_utc(at: float, month: str):
    assert utc_month(at) == month
