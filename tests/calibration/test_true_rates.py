"""True shares by a model's answers to all and people's to a few."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.calibration.intervals import proportion_interval
from steelyard.calibration.true_rates import true_rate

N = 3_000


def world(rng, *, is_good):
    """Probabilities of an outcome and whether it came true, by a model that is too sure of it."""
    truth = rng.random(N) < 0.71
    if is_good:
        evidence = np.where(truth, 2.2, -0.6) + rng.normal(0, 1.3, N) + 0.9
        return 1 / (1 + np.exp(-evidence)), truth.astype(float)
    return rng.beta(4, 1, N), truth.astype(float)


@pytest.mark.parametrize(("is_good", "most_width"), [(True, 0.85), (False, 1.05)])
def test_intervals_hold_and_are_narrower_than_the_checks_alone_where_the_model_is_good(
    is_good, most_width
):
    rng = np.random.default_rng(3)
    hits, width, alone = 0, 0.0, 0.0
    for _ in range(200):
        said, truth = world(rng, is_good=is_good)
        rate = true_rate(float(said.mean()), N, said[:120], truth[:120])
        hits += rate.low <= truth.mean() <= rate.high
        width += rate.high - rate.low
        exact = proportion_interval(truth[:120].sum(), 120)
        alone += exact.high - exact.low
    assert hits >= 0.92 * 200
    assert width < most_width * alone


def test_few_of_a_kind_have_the_exact_interval_of_the_checks():
    exact = proportion_interval(1, 50)
    rate = true_rate(0.3, 1_000, np.linspace(0, 1, 50), [1.0, *[0.0] * 49])
    assert (rate.value, rate.low, rate.high, rate.n) == (0.02, exact.low, exact.high, 50)


def test_all_checked_leaves_no_doubt_and_one_check_says_nothing():
    truth = [1.0, 0.0] * 10
    rate = true_rate(0.5, 20, np.linspace(0, 1, 20), truth)
    assert (rate.value, rate.low, rate.high, rate.more) == (0.5, 0.5, 0.5, 0)
    assert true_rate(0.5, 20, [0.5], [1.0]) is None


def test_a_model_that_never_errs_still_leaves_some_doubt():
    truth = np.array([1.0, 0.0] * 20)
    rate = true_rate(0.5, 1_000, truth, truth)
    assert 0.42 < rate.low < 0.5 < rate.high < 0.58


def test_more_checks_halve_the_interval():
    rng = np.random.default_rng(1)
    said, truth = world(rng, is_good=True)
    first = true_rate(float(said.mean()), N, said[:100], truth[:100])
    n = first.n + first.more
    second = true_rate(float(said.mean()), N, said[:n], truth[:n])
    assert (second.high - second.low) / (first.high - first.low) == pytest.approx(0.5, abs=0.1)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="as many outcomes"):
        true_rate(0.5, 10, [0.5, 0.5], [1.0])
    with pytest.raises(ValueError, match="of 1 answers"):
        true_rate(0.5, 1, [0.5, 0.5], [1.0, 0.0])
