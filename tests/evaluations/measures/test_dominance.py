"""Which of several models nothing beats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.evaluations.measures.dominance import PricedModel, dominated

SMALL = st.integers(0, 2).map(float)
CANDIDATES = st.lists(
    st.builds(PricedModel, loss=SMALL, price=st.none() | SMALL, latency=st.none() | SMALL),
    max_size=6,
)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param((0.1, 1, None), (0.2, 2, None), [False, True], id="better-and-cheaper"),
        pytest.param((0.1, 2, None), (0.2, 1, None), [False, False], id="each-better-in-one"),
        pytest.param((0.1, 1, None), (0.1, 2, None), [False, True], id="as-good-and-cheaper"),
        pytest.param((0.1, 1, None), (0.1, 1, None), [False, False], id="equal"),
        pytest.param((0.1, 1, 5), (0.1, 1, 9), [False, True], id="equal-but-quicker"),
        pytest.param((0.1, 1, 9), (0.2, 2, 5), [False, False], id="better-but-slower"),
        pytest.param((0.1, 1, None), (0.2, 2, 5), [False, True], id="latency-of-one-alone"),
        pytest.param((0.1, None, 1), (0.2, 2, 5), [False, False], id="without-a-price"),
    ],
)
def test_two_models(one, other, expected):
    assert dominated([PricedModel(*one), PricedModel(*other)]) == expected
    assert dominated([PricedModel(*other), PricedModel(*one)]) == expected[::-1]


@given(CANDIDATES)
def test_some_model_is_never_dominated_and_ties_stand_or_fall_together(candidates):
    found = dominated(candidates)
    assert not candidates or not all(found)
    for one, is_worse in zip(candidates, found, strict=True):
        same = {also for other, also in zip(candidates, found, strict=True) if other == one}
        assert same == {is_worse}
