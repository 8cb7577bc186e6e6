"""Laws of the reliability table and of the calibration error's interval."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.calibration.bins import bin_columns, bin_index, bin_totals, ece_from_totals
from steelyard.calibration.intervals import (
    percentile_interval,
    proportion_interval,
    resample_totals,
)
from steelyard.calibration.metrics import accuracy, decision_hits, ece
from steelyard.calibration.reliability import ece_interval, reliability_table


def make_binary(seed, n_decisions, overconfidence=0.0):
    """Return yes/no forecasts that are right ``overconfidence`` less often than they promise."""
    rng = np.random.default_rng(seed)
    top = 0.5 + 0.5 * rng.beta(4, 2, size=n_decisions)
    is_right = rng.random(n_decisions) < np.clip(top - overconfidence, 0, 1)
    targets = np.where(is_right[:, None], [1.0, 0.0], [0.0, 1.0])
    return np.stack([top, 1 - top], axis=1), targets


def test_the_table_sums_up_to_the_accuracy_and_the_calibration_error():
    p, t = make_binary(1, 700, overconfidence=0.1)
    table = reliability_table(p, t)
    held = [row for row in table if row.n]
    assert [(row.low, row.high) for row in table] == [(i / 10, (i + 1) / 10) for i in range(10)]
    assert sum(row.n for row in table) == 700
    assert sum(row.n * row.accuracy for row in held) / 700 == pytest.approx(accuracy(p, t))
    gaps = [row.n * abs(row.accuracy - row.mean_top_probability) for row in held]
    assert sum(gaps) / 700 == pytest.approx(ece(p, t))


def test_every_bin_equals_one_made_by_hand():
    p, t = make_binary(2, 300)
    top, hits = p.max(axis=1), p.argmax(axis=1) == t.argmax(axis=1)
    for row in reliability_table(p, t, n_bins=7, level=0.9):
        chosen = (top > row.low) & (top <= row.high)
        assert row.n == chosen.sum()
        if row.n == 0:
            assert (row.mean_top_probability, row.accuracy, row.interval) == (None, None, None)
            continue
        assert row.low < row.mean_top_probability <= row.high
        assert row.mean_top_probability == pytest.approx(top[chosen].mean())
        assert row.accuracy == pytest.approx(hits[chosen].mean())
        assert row.interval == proportion_interval(float(hits[chosen].sum()), row.n, level=0.9)


def test_order_changes_neither_the_table_nor_the_interval():
    p, t = make_binary(3, 400)
    contexts = np.arange(400) // 2
    order = np.random.default_rng(3).permutation(400)
    for row, shuffled in zip(
        reliability_table(p, t), reliability_table(p[order], t[order]), strict=True
    ):
        assert (row.n, row.accuracy) == (shuffled.n, shuffled.accuracy)
    interval = ece_interval(p, t, clusters=contexts)
    shuffled = ece_interval(p[order], t[order], clusters=contexts[order])
    assert (shuffled.low, shuffled.high) == pytest.approx((interval.low, interval.high))


def test_columns_of_decisions_sum_to_the_totals_of_bins():
    rng = np.random.default_rng(4)
    top, hits = rng.random(200), rng.integers(2, size=200).astype(float)
    columns = bin_columns(top, hits, 6)
    assert np.allclose(columns.sum(axis=0).reshape(6, 3), bin_totals(top, hits, np.ones(200), 6))


def test_each_edge_belongs_to_the_bin_below_it():
    assert bin_index([0.0, *(i / 10 for i in range(1, 11))]).tolist() == [0, *range(10)]
    assert bin_index([1e-9, 0.1 + 1e-9, 0.3 + 1e-9]).tolist() == [0, 1, 3]


@pytest.mark.parametrize(("overconfidence", "least"), [(0.0, 0.7), (0.1, 0.88)])
def test_the_interval_covers_the_true_calibration_error(overconfidence, least):
    """Nearly at its level away from 0; at 0, where the error is biased most, three in four."""
    p, t = make_binary(5, 400_000, overconfidence)
    true_ece = ece(p, t) if overconfidence else 0.0
    covered = 0
    for seed in range(100):
        p, t = make_binary(100 + seed, 800, overconfidence)
        interval = ece_interval(p, t, n_resamples=300, seed=seed)
        assert interval.low <= ece(p, t) <= interval.high
        covered += interval.low <= true_ece <= interval.high
    assert covered / 100 >= least


def test_percentiles_would_miss_the_error_of_a_calibrated_forecaster():
    """Why the interval is the basic one: resampled errors never come near 0."""
    for seed in range(20):
        p, t = make_binary(seed, 800)
        columns = bin_columns(p.max(axis=1), decision_hits(p, t))
        totals = resample_totals(columns, n_resamples=300).reshape(-1, 10, 3)
        assert percentile_interval(ece_from_totals(totals)).low > 0
