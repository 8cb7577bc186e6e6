"""Orders of a draft's rows that are kept at hand: found once, and never more than there is room for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.datasets.filters import ContainsFilter, RowsFilter
from steelyard.review import rows as draft_rows
from steelyard.review.rows import _Orders

MANIFEST = SimpleNamespace(dataset_id="ds_1", version=1, rows=40, next_index=40)


class CountedRows:
    """Finds as many rows as a filter's text has digits for; counts how often it is asked."""

    def __init__(self):
        self.n_asked = 0

    def indexes(self, manifest, *, where, order):
        self.n_asked += 1
        size = int(where.text) if isinstance(where, ContainsFilter) else 0
        return np.arange(size, dtype=np.int64)


def no_rows(number):
    return RowsFilter(sha256=[f"{number:064x}"] * 500)


@pytest.fixture
def rows():
    return CountedRows()


@pytest.fixture
def orders(rows):
    return _Orders(rows)


def test_an_order_is_found_once_for_each_version_and_filter(rows, orders):
    later = SimpleNamespace(dataset_id="ds_1", version=2, rows=40, next_index=40)
    for manifest in (MANIFEST, later):
        for number in (1, 2):
            for _ in range(2):
                assert len(orders.of(manifest, ContainsFilter(text=str(number)), None)) == number
    assert rows.n_asked == 4


def test_orders_of_no_rows_are_dropped_too(rows, orders):
    n_kept = draft_rows.CACHED_ORDERS
    for number in range(n_kept + 1):
        orders.of(MANIFEST, no_rows(number), None)
    assert len(orders.cached) == n_kept
    # Of a filter of 30 kB nothing is kept but a hash.
    assert max(map(len, orders.cached)) <= 64
    assert rows.n_asked == n_kept + 1
    orders.of(MANIFEST, no_rows(n_kept), None)
    assert rows.n_asked == n_kept + 1
    orders.of(MANIFEST, no_rows(0), None)
    assert rows.n_asked == n_kept + 2


def test_orders_are_dropped_by_their_rows_and_the_last_one_is_kept_at_any_size(orders):
    orders.cached.bound(10)
    for text, sizes in (("4", [4]), ("5", [4, 5]), ("3", [5, 3]), ("30", [30]), ("10", [10])):
        orders.of(MANIFEST, ContainsFilter(text=text), None)
        assert [len(places) for _, places in orders.cached.items()] == sizes
        assert orders.cached.size == sum(sizes)


def test_an_order_that_two_found_at_once_counts_once(rows, orders, monkeypatch):
    found = rows.indexes
    where = ContainsFilter(text="7")

    def found_by_another_too(*given, **options):
        monkeypatch.undo()
        orders.of(MANIFEST, where, None)
        return found(*given, **options)

    monkeypatch.setattr(rows, "indexes", found_by_another_too)
    orders.of(MANIFEST, where, None)
    assert (rows.n_asked, orders.cached.size, len(orders.cached)) == (2, 7, 1)
