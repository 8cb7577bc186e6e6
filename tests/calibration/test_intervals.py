"""Laws of the intervals: coverage by simulation, seeds, clusters, order, and agreement in form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from steelyard.calibration.intervals import (
    mean_interval,
    percentile_interval,
    proportion_interval,
    ratio_intervals,
    resample_totals,
)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.98])
@pytest.mark.parametrize("n", [2, 10, 60])
def test_a_proportion_is_covered_at_its_level_near_the_ends_too(share, n):
    counts = np.arange(n + 1)
    covers = [(i := proportion_interval(k, n)).low <= share <= i.high for k in counts.tolist()]
    assert binom.pmf(counts, n, share) @ covers >= 0.95


def test_single_trials_with_bounds_have_the_exact_interval():
    hits = np.repeat([[1.0], [0.0]], [9, 1], axis=0)
    low, high = ratio_intervals(hits, np.ones((10, 1)), lows=[0], highs=[1], n_resamples=40_000)
    exact = proportion_interval(9, 10)
    assert (low[0], high[0]) == pytest.approx((exact.low, exact.high), abs=0.005)


@pytest.mark.parametrize("n_clusters", [2, 4, 12])
def test_a_mean_is_covered_from_two_contexts_on(n_clusters):
    """Of values with bounds that are far above most of them, and of those without any."""
    rng = np.random.default_rng(n_clusters)
    rare, normal = 0, 0
    for _ in range(150):
        losses = np.where(rng.random(n_clusters) < 0.05, 3.0, 0.1)
        interval = mean_interval(losses, least=0.0, most=3.0, n_resamples=300)
        rare += interval.low <= 0.245 <= interval.high
        interval = mean_interval(rng.normal(size=n_clusters))
        normal += interval.low <= 0 <= interval.high
    # Of 150 draws at 95 %, fewer are met once in a thousand times.
    assert rare >= 133
    assert normal >= 133


def test_nothing_is_promised_of_one_cluster_or_of_equal_values_without_bounds():
    assert mean_interval([0.5], least=0.0, most=1.0) is None
    assert mean_interval([0.1] * 3) is None


def test_it_is_symmetric_holds_the_share_and_has_width_at_the_ends():
    for n_successes in range(21):
        interval = proportion_interval(n_successes, 20)
        mirrored = proportion_interval(20 - n_successes, 20)
        assert 0 <= interval.low <= n_successes / 20 <= interval.high <= 1
        assert interval.high > interval.low
        assert interval.low == pytest.approx(1 - mirrored.high)


def test_more_trials_narrow_and_a_higher_level_widens():
    widths = [i.high - i.low for i in (proportion_interval(k, 2 * k) for k in (5, 50, 500))]
    assert widths == sorted(widths, reverse=True)
    wide, narrow = proportion_interval(5, 10, level=0.99), proportion_interval(5, 10, level=0.9)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("n_successes", "n"), [(1, 0), (-1, 5), (6, 5), (math.nan, 5), (1, math.nan)]
)
def test_a_proportion_refuses_impossible_counts(n_successes, n):
    with pytest.raises(ValueError, match="trials"):
        proportion_interval(n_successes, n)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, math.nan])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(ValueError, match="level"):
        proportion_interval(1, 2, level=level)
    with pytest.raises(ValueError, match="level"):
        percentile_interval([1.0, 2.0], level=level)


def test_every_resample_draws_as_many_clusters_as_there_are():
    values = np.column_stack([np.ones(50), np.arange(50.0)])
    totals = resample_totals(values, n_resamples=500)
    assert totals.shape == (500, 2)
    assert (totals[:, 0] == 50).all()
    assert totals[:, 1].mean() == pytest.approx(values[:, 1].sum(), rel=0.02)
    assert totals[:, 1].std() == pytest.approx(math.sqrt(50) * values[:, 1].std(), rel=0.1)


def test_chunked_resampling_is_one_stream(monkeypatch):
    values = np.random.default_rng(2).normal(size=(30, 3))
    whole = resample_totals(values, n_resamples=40, seed=9)
    monkeypatch.setattr("steelyard.calibration.intervals._COUNTS_AT_A_TIME", 70)
    assert np.allclose(resample_totals(values, n_resamples=40, seed=9), whole)


def test_equal_seeds_pair_and_different_seeds_do_not():
    values = np.random.default_rng(3).normal(size=(40, 1))
    first, again = resample_totals(values, seed=5), resample_totals(values, seed=5)
    assert (first == again).all()
    assert (resample_totals(2 * values, seed=5) == 2 * first).all()
    assert (resample_totals(values, seed=6) != first).any()


def test_the_order_of_rows_changes_nothing_when_clusters_are_named():
    rng = np.random.default_rng(4)
    values, clusters = (
        rng.normal(size=60),
        np.array([f"context {k}" for k in rng.integers(20, size=60)]),
    )
    order = rng.permutation(60)
    interval = mean_interval(values, clusters=clusters)
    shuffled = mean_interval(values[order], clusters=clusters[order])
    assert (shuffled.low, shuffled.high) == pytest.approx((interval.low, interval.high))


def test_repeating_every_row_in_its_cluster_changes_nothing():
    values, clusters = np.random.default_rng(5).normal(size=30), np.arange(30)
    once = mean_interval(values, clusters=clusters)
    thrice = mean_interval(np.repeat(values, 3), clusters=np.repeat(clusters, 3))
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    taken_apart = mean_interval(np.repeat(values, 3))
    assert taken_apart.high - taken_apart.low < 0.7 * (once.high - once.low)


def test_weights_equal_repetition_within_a_cluster():
    rng = np.random.default_rng(6)
    values, counts, clusters = rng.normal(size=25), rng.integers(1, 5, size=25), np.arange(25)
    weighted = mean_interval(values, weights=counts, clusters=clusters)
    repeated = mean_interval(np.repeat(values, counts), clusters=np.repeat(clusters, counts))
    assert (weighted.low, weighted.high) == pytest.approx((repeated.low, repeated.high))


def test_the_interval_covers_the_true_mean_of_clustered_decisions():
    """Four alike decisions a context: drawn by context it covers, drawn singly it does not."""
    rng = np.random.default_rng(7)
    clusters = np.repeat(np.arange(50), 4)
    by_context, singly = 0, 0
    for _ in range(200):
        values = np.repeat(rng.normal(size=50), 4) + 0.3 * rng.normal(size=200)
        interval = mean_interval(values, clusters=clusters, n_resamples=400)
        by_context += interval.low <= 0 <= interval.high
        interval = mean_interval(values, n_resamples=400)
        singly += interval.low <= 0 <= interval.high
    assert by_context >= 180
    assert singly <= 160


@pytest.mark.parametrize(
    "call",
    [
        lambda: mean_interval([]),
        lambda: mean_interval([1.0, math.nan]),
        lambda: mean_interval([1.0, 2.0], weights=[1.0]),
        lambda: mean_interval([1.0, 2.0], weights=[1.0, 0.0]),
        lambda: mean_interval([1.0, 2.0], clusters=["only one"]),
        lambda: resample_totals([1.0, 2.0]),
        lambda: percentile_interval([]),
        lambda: percentile_interval([1.0, math.inf]),
    ],
)
def test_figures_without_an_interval_are_refused(call):
    with pytest.raises(ValueError, match=r"matrix|row|rows|statistic"):
        call()
