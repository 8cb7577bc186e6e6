"""The learning curve of a family that is not trained yet."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.growth.learning import (
    Labelled,
    estimate,
    fit_and_miss,
    fit_curve,
    word_vectors,
)
from steelyard.proof.margins import FALSE_PASSES, is_as_right, level_of, lower_end
from steelyard.wire.measures import Measure


def make_side(n, seed, noise=0.3, width=24):
    """Rows of three outcomes whose directions a head can learn, from more of them the better."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    centres = np.eye(3, width)
    return Labelled(centres[labels] + rng.normal(0, noise, (n, width)), labels)


def make_error(value, n=500):
    return Measure(value=value, low=None, high=None, n=n)


def test_a_head_learns_in_either_form_and_texts_are_alike_by_their_words():
    evaluation = make_side(200, 1)
    few, many = (fit_and_miss(make_side(n, 2), evaluation).mean() for n in (15, 400))
    assert many < few < 0.6
    assert many < 0.05
    parcel, same, other = word_vectors(
        ["Where is my parcel", "where is My parcel", "a refund please"]
    )
    assert (parcel == same).all()
    assert parcel @ same > parcel @ other


def test_a_curve_is_read_back_from_its_own_points():
    sizes = np.array([50.0, 100, 200, 400])
    floor, slope, power = fit_curve(sizes, 0.1 + 2 * sizes**-0.5)
    assert (round(floor, 3), round(slope, 2), power) == (0.1, 2.0, 0.5)
    assert fit_curve(sizes, np.array([0.3, 0.2, 0.1, 0.01]))[0] >= 0


@pytest.mark.parametrize(
    ("noise", "judge_error", "is_near", "has_number"),
    [(0.3, 0.3, True, True), (0.7, 0.02, False, False)],
    ids=["as right at once", "never as right"],
)
def test_it_says_whether_a_family_would_pass_and_how_many_rows_are_missing(
    noise, judge_error, is_near, has_number
):
    sides = {"team": (make_side(200, 3, noise), make_side(150, 4, noise))}
    made = estimate(sides, make_error(judge_error), margin=0.02, n_comparisons=1)
    assert (made.chance >= 0.5, made.more_rows is not None) == (is_near, has_number), made
    assert [size for size, _ in made.curve] == [25, 50, 100, 200]
    assert made == estimate(sides, make_error(judge_error), margin=0.02, n_comparisons=1)


def test_more_evaluation_rows_make_an_equal_family_pass():
    sides = {"team": (make_side(60, 5, 0.5), make_side(40, 6, 0.5))}
    made = estimate(sides, make_error(0.12), margin=0.02, n_comparisons=1)
    assert made.more_rows is None or made.more_rows > 0
    wider = estimate(sides, make_error(0.3), margin=0.2, n_comparisons=1)
    assert wider.chance > made.chance


def test_all_comparisons_together_pass_a_family_that_is_worse_in_a_twentieth_of_growths():
    rng = np.random.default_rng(7)
    n, margin = 400, 0.02
    # Worse by the margin: rows that the family alone, neither or both, or the other alone gets right.
    gained, _, lost = np.moveaxis(rng.multinomial(n, [0.05, 0.88, 0.07], (2_000, 5)), -1, 0)
    changes = (gained - lost) / n
    lows = changes - 1.96 * np.sqrt(((gained + lost) / n - changes**2) / n)
    n_passed = sum(
        any(
            is_as_right(change, low, margin=margin, n_comparisons=look)
            for look, (change, low) in enumerate(zip(*growth, strict=True), start=1)
        )
        for growth in zip(changes, lows, strict=True)
    )
    assert n_passed / 2_000 <= FALSE_PASSES + 0.01
    assert lower_end(0.0, -0.04, 2) < -0.04
    assert level_of(3) > level_of(2) > level_of(1)
