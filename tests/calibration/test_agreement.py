"""Krippendorff's alpha: published examples, no disagreement, no pairs, intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.calibration.agreement import krippendorff_alpha, share

_ = None
#: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011, example C: four observers.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
UNITS = [[one - 1 for one in unit if one is not None] for unit in zip(*OBSERVERS, strict=True)]


@pytest.mark.parametrize(("is_ordinal", "alpha"), [(False, 0.743), (True, 0.849)])
def test_the_published_example(is_ordinal, alpha):
    found = krippendorff_alpha(UNITS, 5, is_ordinal=is_ordinal)
    assert found.value == pytest.approx(alpha, abs=0.0005)
    assert found.low < found.value < found.high
    assert found.n == 11


def test_two_observers_and_two_outcomes():
    """Example A of the same: ten units, 0.095."""
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    found = krippendorff_alpha(list(zip(first, second, strict=True)), 2)
    assert found.value == pytest.approx(0.095, abs=0.0005)


@pytest.mark.parametrize(
    "votes", [[], [[0], [1]], [[0, 0], [0, 0]]], ids=["none", "alone", "one-outcome"]
)
def test_nothing_can_be_said(votes):
    assert krippendorff_alpha(votes, 2) is None


def test_agreement_of_few_rows_promises_nothing_of_the_next():
    votes = [[0, 0, 0], [1, 1, 1]]
    few, many = (krippendorff_alpha(votes * n, 2) for n in (2, 200))
    assert (few.value, few.high) == (many.value, many.high) == (1, 1)
    assert few.low < 0
    assert 0.9 < many.low < 1
    alone = krippendorff_alpha([[0, 1]], 2)
    assert (alone.low, alone.high) == (None, None)


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4), min_size=1, max_size=12),
    st.booleans(),
)
def test_it_is_at_most_one_and_within_its_interval(votes, is_ordinal):
    found = krippendorff_alpha(votes, 4, is_ordinal=is_ordinal)
    if found is not None and found.low is not None:
        assert found.low <= found.value <= found.high <= 1 + 1e-12
        assert not math.isnan(found.low)


def test_shares():
    assert share(0, 0) is None
    assert share(9, 10).low == pytest.approx(0.555, abs=0.001)
