from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.confidence import (
    choice_confidence,
    score_confidence,
    top_probability_at,
)

weights = st.lists(st.floats(0, 1e6), min_size=1, max_size=30).filter(
    lambda values: math.fsum(values) > 1e-6
)


def shares(values: list[float]) -> list[float]:
    total = math.fsum(values)
    return [value / total for value in values]


def test_choice_is_the_rise_of_the_top_above_chance():
    assert choice_confidence([0.7, 0.2, 0.1]) == pytest.approx((0.7 - 1 / 3) / (2 / 3))
    assert choice_confidence([0.7, 0.2, 0.1]) == pytest.approx(0.55)


def test_score_is_the_closeness_of_levels_to_the_mode():
    # Expected distance 0.4; mean distance from the middle of three levels 2/3.
    assert score_confidence([0.7, 0.2, 0.1]) == pytest.approx(0.4)


@pytest.mark.parametrize("confidence", [choice_confidence, score_confidence])
def test_one_outcome_is_certain(confidence):
    assert confidence([1.0]) == 1.0


@pytest.mark.parametrize("confidence", [choice_confidence, score_confidence])
@pytest.mark.parametrize("n", [2, 3, 10, 255])
def test_all_on_one_is_one(confidence, n):
    assert confidence([0.0] * (n - 1) + [1.0]) == pytest.approx(1)


@pytest.mark.parametrize("n", [2, 3, 10, 255])
def test_all_alike_is_no_choice(n):
    assert choice_confidence([1 / n] * n) == pytest.approx(0, abs=1e-12)


def test_two_ends_alike_are_no_score():
    assert score_confidence([0.5, 0.0, 0.5]) == 0


@given(weights)
def test_both_stay_between_zero_and_one(values):
    assert 0 <= choice_confidence(shares(values)) <= 1 + 1e-9
    assert 0 <= score_confidence(shares(values)) <= 1 + 1e-9


@given(weights, st.floats(0.01, 100))
def test_both_normalise_first(values, factor):
    scaled = [value * factor for value in shares(values)]
    assert choice_confidence(scaled) == pytest.approx(choice_confidence(shares(values)), abs=1e-9)


@given(weights.filter(lambda values: len(values) > 1))
def test_a_threshold_on_confidence_is_one_on_the_top_probability(values):
    probabilities = shares(values)
    there = top_probability_at(choice_confidence(probabilities), len(probabilities))
    assert there == pytest.approx(max(probabilities), abs=1e-9)


def test_threshold_in_numbers():
    assert top_probability_at(0.55, 3) == pytest.approx(0.7)
    assert top_probability_at(0.5, 2) == 0.75
    assert top_probability_at(0.3, 1) == 1
