"""True shares by a model's answers to all and people's to a few."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.calibration.intervals import proportion_interval
from steelyard.calibration.true_rates import (
    STRATUM_EDGES,
    Stratum,
    corrected_rate,
    strata_in_turn,
    stratified_rate,
    true_rate,
)

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


def strata_of(said, truth, n_checks):
    places = np.digitize(said, STRATUM_EDGES)
    sizes, means = np.bincount(places, minlength=4), np.bincount(places, said, 4)
    means = means / np.maximum(sizes, 1)
    drawn = np.bincount(list(strata_in_turn(sizes.tolist(), means.tolist(), n_checks)), minlength=4)
    return [
        Stratum(
            float(means[place]),
            int(sizes[place]),
            said[places == place][: drawn[place]],
            truth[places == place][: drawn[place]],
        )
        for place in range(4)
    ]


def test_strata_are_weighted_by_their_answers_however_they_were_checked():
    rng = np.random.default_rng(5)
    hits, width, by_chance = 0, 0.0, 0.0
    for _ in range(200):
        said, truth = world(rng, is_good=True)
        rate = stratified_rate(strata_of(said, truth, 120))
        hits += rate.low <= truth.mean() <= rate.high
        width += rate.high - rate.low
        uniform = true_rate(float(said.mean()), N, said[:120], truth[:120])
        by_chance += uniform.high - uniform.low
    assert hits >= 0.92 * 200
    assert width < by_chance
    # As many of the rare stratum as of the common one, and the share stays that of all answers.
    halves = [
        Stratum(0.95, 100, [0.95] * 40, [1.0] * 40),
        Stratum(0.05, 900, [0.05] * 40, [0.0] * 36 + [1.0] * 4),
    ]
    assert stratified_rate(halves).value == pytest.approx(0.1 + 0.9 * 0.1)


def test_rare_outcomes_by_strata_are_no_wider_than_the_checks_alone():
    rng = np.random.default_rng(7)
    hits, width, alone = 0, 0.0, 0.0
    for _ in range(200):
        truth = (rng.random(N) < 0.005).astype(float)
        said = 1 / (1 + np.exp(-np.where(truth, 1.5, -3.0) - rng.normal(0, 1.5, N)))
        rate = stratified_rate(strata_of(said, truth, 120))
        hits += rate.low <= truth.mean() <= rate.high
        width += rate.high - rate.low
        exact = proportion_interval(truth[:120].sum(), 120)
        alone += exact.high - exact.low
    assert hits >= 0.94 * 200
    assert width < 1.05 * alone


def test_a_stratum_of_too_few_checks_says_nothing_unless_it_is_whole():
    many = Stratum(0.05, 900, [0.05] * 40, [0.0] * 40)
    assert stratified_rate([Stratum(0.9, 5, [0.9] * 4, [1.0] * 4), many]) is None
    rate = stratified_rate([Stratum(0.9, 3, [0.9] * 3, [1.0] * 3), many, Stratum(0, 0, [], [])])
    assert (rate.value, rate.n) == (pytest.approx(3 / 903), 43)
    whole = [Stratum(0.9, 6, [0.9] * 6, [1.0] * 6), Stratum(0.1, 6, [0.1] * 6, [0.0] * 6)]
    whole_rate = stratified_rate(whole)
    assert (whole_rate.value, whole_rate.low, whole_rate.high) == (0.5, 0.5, 0.5)


def test_a_share_is_corrected_by_rates_that_are_known_from_other_answers():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(500):
        n_said = rng.binomial(5_000, 0.3 * 0.8 + 0.7 * 0.05)
        rate = corrected_rate(
            n_said, 5_000, (rng.binomial(50, 0.8), 50), (rng.binomial(100, 0.95), 100)
        )
        hits += rate.low <= 0.3 <= rate.high
    assert hits >= 0.94 * 500
    assert corrected_rate(50, 100, (40, 100), (60, 100)) is None  # says it as often of both
    assert corrected_rate(50, 100, (1, 1), (0, 0)) is None
    sure = corrected_rate(0, 1_000, (90, 100), (900, 900))
    assert (sure.value, sure.low, sure.n) == (0, 0, 1_000)
