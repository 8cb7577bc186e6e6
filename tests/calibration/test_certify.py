"""Certified bounds against the binomial law, and the answer where there are too few rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from steelyard.calibration.certify import certify_threshold, last_passed, missing_rows, run_tests


def test_single_decisions_are_tested_by_the_binomial_law():
    wrong = np.zeros((100, 2))
    wrong[:4, 1] = 1
    tests = run_tests(wrong, np.ones((100, 2)), np.arange(100), error=0.1)
    assert tests.p_values == pytest.approx([0.9**100, binom.cdf(4, 100, 0.1)])
    assert tests.rates == pytest.approx([0, 0.04])
    # Several decisions a context that agree are worth one.
    shared = run_tests(
        np.repeat(wrong, 3, 0), np.ones((300, 2)), np.repeat(range(100), 3), error=0.1
    )
    assert shared.p_values == pytest.approx(tests.p_values, abs=0.01)


def test_a_failure_ends_earlier_tests():
    tests = run_tests(np.zeros((9, 4)), np.ones((9, 4)), np.arange(9), error=0.5)
    tests.p_values[:] = [0.01, 0.2, 0.04, 0.03]
    assert last_passed(tests, {0}, confidence=0.95) == 0
    assert last_passed(tests, {0, 2}, confidence=0.95) == 0
    assert last_passed(tests, {2}, confidence=0.95) == 3
    assert last_passed(tests, {1}, confidence=0.95) is None


def test_rows_that_are_missing_are_those_that_would_certify():
    tests = run_tests(np.zeros((40, 1)), np.ones((40, 1)), np.arange(40), error=0.05)
    missing = missing_rows(tests, {0}, n_rows=40, confidence=0.95)
    # 59 right answers certify 95 %, and 58 do not.
    assert missing == pytest.approx(19, abs=1)
    wrong = np.full((40, 1), 0.0)
    wrong[:4] = 1
    at_bound = run_tests(wrong, np.ones((40, 1)), np.arange(40), error=0.05)
    assert missing_rows(at_bound, {0}, n_rows=40, confidence=0.95) is None


def test_the_lowest_threshold_that_holds_is_found():
    rng = np.random.default_rng(3)
    p_top = rng.uniform(0.5, 1, 2000)
    right = (rng.random(2000) < p_top).astype(float)
    found = certify_threshold(p_top, right, np.arange(2000), error=0.1)
    # At or above .8 answers are wrong in a tenth.
    assert found.holds
    assert 0.8 <= found.threshold < 0.92
    assert found.error < 0.1
    assert found.answered == pytest.approx(np.mean(p_top >= found.threshold))
    few = certify_threshold(p_top[:60], right[:60], np.arange(60), error=0.02)
    assert not few.holds
    assert few.missing_rows is None or few.missing_rows > 60
