"""The simulation of alarms, small: few runs without drift raise one, and a share that rises is found."""

from __future__ import annotations

import numpy as np

from steelyard.alarms.budget import threshold

SHARES = (0.55, 0.3, 0.1, 0.05)


def test_few_runs_without_drift_raise_and_a_share_that_rises_is_found(script):
    alarms, rng = script("alarms"), np.random.default_rng(7)
    runs = {"runs": 150, "n_reference": 2000}
    quiet = alarms.evidence(SHARES, SHARES, rng, n=10_000, **runs)
    moved = alarms.shifted(SHARES, 3, 0.1)
    later = alarms.evidence(SHARES, moved, rng, n=1_500, begins=1_000, **runs)
    bound = threshold("shares")
    assert (quiet.max(axis=1) >= bound).mean() <= 0.02
    assert (later[:, 20:].max(axis=1) >= bound).mean() >= 0.9
    # Evidence is fair: on average the capital does not grow.
    assert np.exp(quiet[:, -1]).mean() < 1.2
