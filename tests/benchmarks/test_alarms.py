"""The simulation of alarms, small: few runs without drift raise one, and a share that rises is found."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.alarms.budget import threshold

SHARES = (0.55, 0.3, 0.1, 0.05)


@pytest.mark.slow
def test_few_runs_without_drift_raise_and_a_share_that_rises_is_found(script):
    alarms, rng, runs = script("alarms"), np.random.default_rng(7), 150
    reference = rng.multinomial(2_000, SHARES, size=runs)
    moved = alarms.shifted(SHARES, 3, 0.1)
    quiet = alarms.counted(SHARES, SHARES, rng, runs=runs, n=10_000)
    later = alarms.counted(SHARES, moved, rng, runs=runs, n=1_500, begins=1_000)
    bound = threshold("shares")
    false, _ = alarms.evidence(quiet, reference, 2_000)
    assert (false.max(axis=1) >= bound).mean() <= 0.02
    found, _ = alarms.evidence(later, reference, 2_000)
    assert (found[:, 20:].max(axis=1) >= bound).mean() >= 0.9


def test_a_common_share_that_rises_at_the_start_is_found_by_the_first_window(script):
    alarms, rng, runs = script("alarms"), np.random.default_rng(8), 300
    reference = rng.multinomial(5_000, (0.5, 0.5), size=runs)
    sums = alarms.counted((0.5, 0.5), (0.6, 0.4), rng, runs=runs, n=500)
    bound, most = threshold("shares"), alarms.most_power(sums[:, -1, 0], 500, 0.5, 0.6, 0.01)
    found, by_bets = (
        (one.max(axis=1) >= bound).mean() for one in alarms.evidence(sums, reference, 5_000)
    )
    assert by_bets < found <= most
    assert found >= 0.86
