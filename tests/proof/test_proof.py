"""Differences of two models and verdicts by rules, on made-up values."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.calibration.intervals import percentile_interval, ratio_intervals, resample_totals
from steelyard.proof.differences import Bootstrap, Paired
from steelyard.proof.margins import few_contexts, noise_band
from steelyard.proof.rules import VerdictRule, reasons_of

CONTEXTS = np.repeat(np.arange(12), 2)
DRAWS = Bootstrap(n_resamples=200)


@pytest.fixture
def paired():
    before, after = np.random.default_rng(3).random((2, 24, 2))
    return Paired(before, after, CONTEXTS)


def test_differences_are_ratios_of_sums_over_contexts(paired):
    sums = np.add.reduceat(paired.after - paired.before, np.arange(0, 24, 2))
    bounds = {"lows": [-1, -1], "highs": [1, 1], "n_resamples": 200}
    lows, highs = ratio_intervals(sums, np.full((12, 2), 2.0), **bounds)
    both = paired.differences([-1, -1], [1, 1], DRAWS)
    assert [(one.low, one.high) for one in both] == list(zip(lows, highs, strict=True))
    assert [one.change for one in both] == [one.after - one.before for one in both]
    assert {one.n for one in both} == {24}


def test_percentiles_are_of_resampled_contexts(paired):
    values = np.stack([paired.after[:, 0] - paired.before[:, 0], np.ones(24)], axis=1)
    totals = resample_totals(values, CONTEXTS, n_resamples=200)
    interval = percentile_interval(totals[:, 0] / totals[:, 1])
    difference = paired.percentile_difference(DRAWS)
    assert (difference.low, difference.high) == (interval.low, interval.high)


def test_over_one_context_there_is_no_interval(paired):
    alone = Paired(paired.before, paired.after, np.zeros(24))
    assert alone.percentile_difference(DRAWS)[3:5] == (None, None)
    assert alone.differences([-1, -1], [1, 1], DRAWS)[0].low is None


def test_fewer_contexts_ask_for_more():
    assert few_contexts(-0.1, -0.05, 1) == 0.0
    assert few_contexts(-0.1, -0.05, 10) > few_contexts(-0.1, -0.05, 100) > 0
    drawn = np.linspace(-0.1, 0.3, 101)
    assert noise_band(0.1, drawn, 10, 0.95) > noise_band(0.1, drawn, 1_000, 0.95) > 0
    assert noise_band(-0.5, drawn, 10, 0.95) == 0


def test_rules_speak_in_their_order_and_one_may_end_it():
    few = VerdictRule[int]("few", lambda n: None if n > 3 else "too few", ends=True)
    odd = VerdictRule[int]("odd", lambda n: "odd" if n % 2 else None)
    large = VerdictRule[int]("large", lambda n: "large" if n > 10 else None)
    rules = (few, odd, large)
    assert [list(reasons_of(rules, n)) for n in (1, 4, 5, 13)] == [
        ["few"],
        [],
        ["odd"],
        ["odd", "large"],
    ]
