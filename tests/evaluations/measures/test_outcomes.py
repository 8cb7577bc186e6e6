"""Measures per outcome: a worked example, pairs counted one by one, and areas under curves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.calibration.intervals import proportion_interval
from steelyard.evaluations.measures.outcomes import (
    area_under_curve,
    confusion_matrix,
    outcome_measures,
)
from support.models.scored_records import QUICK, ScoredRecord, make_rows, table_of

NAMES = ("cat", "dog", "fox")


def sure(index, top, truth, names=NAMES):
    """A record on a context of its own, 0.6 on its top outcome, 0.4 spread over the others."""
    rest = 0.4 / (len(names) - 1)
    p = tuple(0.6 if name == top else rest for name in names)
    t = tuple(float(name == truth) for name in names)
    return ScoredRecord(f"c{index}", "animal", "single", names, p, t)


def worked():
    """Answers (top, truth): 3 cats right, 1 cat for dog, 2 dogs right, 1 dog for cat, no fox."""
    answers = [("cat", "cat")] * 3 + [("cat", "dog")] + [("dog", "dog")] * 2 + [("dog", "cat")]
    return [sure(index, *answer) for index, answer in enumerate(answers)]


def test_the_worked_example():
    table = table_of(worked())
    assert confusion_matrix(table).outcomes == list(NAMES)
    assert confusion_matrix(table).counts == [[3, 1, 0], [1, 2, 0], [0, 0, 0]]
    cat, dog, fox = outcome_measures(table, QUICK)
    assert (cat.outcome, cat.support, cat.predicted) == ("cat", 4, 4)
    assert (cat.precision.value, cat.precision.n) == (0.75, 4)
    assert (cat.recall.value, cat.recall.n) == (0.75, 4)
    assert (cat.f1.value, cat.f1.n) == (0.75, 5)
    assert dog.f1.value == pytest.approx(2 * 2 / (3 + 3))
    expected = proportion_interval(3, 4)
    assert (cat.precision.low, cat.precision.high) == (expected.low, expected.high)
    assert cat.share.value == pytest.approx(4 / 7)
    assert cat.mean_probability.value == pytest.approx((4 * 0.6 + 3 * 0.2) / 7)
    # Cats score 0.6 three times and 0.2 once; the others 0.2 twice and 0.6 once.
    assert cat.auc.value == pytest.approx((3 * (2 + 0.5) + 1 * (2 * 0.5)) / 12)
    assert (fox.support, fox.predicted) == (0, 0)
    assert (fox.precision, fox.recall, fox.f1, fox.auc) == (None, None, None, None)
    assert fox.mean_probability.value == pytest.approx(0.2)


@given(st.integers(0, 2**32 - 1), st.integers(2, 25))
@settings(deadline=None, max_examples=20)
def test_every_count_equals_a_loop(seed, n_contexts):
    rows = make_rows(seed, n_contexts, decisions={"topic": ("single", NAMES)})
    pairs = [
        (
            row.outcomes[row.probabilities.index(max(row.probabilities))],
            row.outcomes[row.targets.index(max(row.targets))],
        )
        for row in rows
    ]
    table = table_of(rows)
    counts = confusion_matrix(table).counts
    for (i, truth), (j, top) in product(enumerate(NAMES), enumerate(NAMES)):
        assert counts[i][j] == pairs.count((top, truth))
    for found in outcome_measures(table, QUICK):
        right = pairs.count((found.outcome, found.outcome))
        predicted = sum(top == found.outcome for top, _ in pairs)
        support = sum(truth == found.outcome for _, truth in pairs)
        assert (found.predicted, found.support) == (predicted, support)
        assert (found.precision is None) == (predicted == 0)
        if predicted:
            assert found.precision.value == pytest.approx(right / predicted)
        if support:
            assert found.recall.value == pytest.approx(right / support)
        if predicted + support:
            assert found.f1.value == pytest.approx(2 * right / (predicted + support))
            assert found.f1.n == predicted + support - right


def test_records_of_different_outcome_lists_share_a_table():
    short = ("dog", "cat")
    rows = [sure(0, "cat", "cat"), sure(1, "cat", "dog", short), sure(2, "fox", "fox")]
    table = table_of(rows)
    assert table.names == NAMES
    assert confusion_matrix(table).counts == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    fox = outcome_measures(table, QUICK)[2]
    assert fox.share.n == 2
    assert fox.share.value == 0.5


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=30).filter(
        lambda pairs: len({positive for _, positive in pairs}) == 2
    )
)
@settings(deadline=None, max_examples=60)
def test_the_area_equals_counting_every_pair(pairs):
    scores = np.array([score / 6 for score, _ in pairs])
    is_positive = np.array([positive for _, positive in pairs])
    found = area_under_curve(scores, is_positive, np.arange(len(pairs)))
    wins = [
        float(a > b) + 0.5 * float(a == b)
        for a, b in product(scores[is_positive], scores[~is_positive])
    ]
    assert found.value == pytest.approx(sum(wins) / len(wins))
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.n == len(pairs)
    turned = area_under_curve(-scores, is_positive, np.arange(len(pairs)))
    assert turned.value == pytest.approx(1 - found.value)


def test_an_area_needs_both_sides():
    assert area_under_curve(np.ones(3), np.ones(3, dtype=bool), np.arange(3)) is None


def test_copies_on_one_context_do_not_narrow_the_area():
    rng = np.random.default_rng(3)
    is_positive = rng.random(60) < 0.4
    scores = rng.normal(size=60) + is_positive
    alone = area_under_curve(scores, is_positive, np.arange(60))
    copied = area_under_curve(
        np.repeat(scores, 5), np.repeat(is_positive, 5), np.repeat(np.arange(60), 5)
    )
    assert copied.value == pytest.approx(alone.value)
    assert copied.high - copied.low == pytest.approx(alone.high - alone.low, rel=1e-6)


def test_the_variance_of_an_area_is_that_of_leaving_contexts_out():
    """Positives and negatives of one context move together; the jackknife over contexts sees it."""
    rng = np.random.default_rng(5)
    codes = np.repeat(np.arange(120), 4)
    is_positive = np.tile([True, False, False, True], 120)
    scores = rng.normal(size=120)[codes] * 1.5 + is_positive + rng.normal(size=480)
    found = area_under_curve(scores, is_positive, codes)
    left_out = [
        area_under_curve(scores[kept], is_positive[kept], codes[kept]).value
        for kept in (codes != code for code in range(120))
    ]
    variance = 119 / 120 * np.square(np.array(left_out) - np.mean(left_out)).sum()
    trials = found.value * (1 - found.value) / variance
    expected = proportion_interval(found.value * trials, trials)
    assert found.high - found.low == pytest.approx(expected.high - expected.low, rel=0.02)


def test_the_intervals_of_areas_hold_the_truth():
    """Two normals one apart: the area is Phi(1 / sqrt 2) = 0.760."""
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(200):
        is_positive = np.arange(80) < 30
        found = area_under_curve(rng.normal(size=80) + is_positive, is_positive, np.arange(80))
        covered += found.low <= 0.76025 <= found.high
    assert 182 <= covered <= 199
