"""Laws of the measures: against loops, under repetition, order, padding and perfection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.calibration.metrics import (
    LEAST_PROBABILITY,
    MetricSummary,
    accuracy,
    brier,
    decision_brier_scores,
    decision_hits,
    decision_log_losses,
    ece,
    log_loss,
    pad_rows,
    summarise,
)

MEASURES = [accuracy, log_loss, brier, ece]


def make_decisions(seed, n_decisions=40, most_outcomes=9, *, soft=True):
    """Return lists of probability and target vectors, one a decision, of 2 to ``most_outcomes``."""
    rng = np.random.default_rng(seed)
    forecasts, targets = [], []
    for _ in range(n_decisions):
        n_outcomes = int(rng.integers(2, most_outcomes + 1))
        forecasts.append(rng.dirichlet(np.full(n_outcomes, 0.7)))
        if soft and rng.random() < 0.5:
            targets.append(rng.dirichlet(np.ones(n_outcomes)))
        else:
            targets.append(np.eye(n_outcomes)[rng.integers(n_outcomes)])
    return forecasts, targets


def summary_by_loops(forecasts, targets, n_bins=10):
    """Measure one decision at a time, as the definitions read."""
    hits, losses, scores, bins = [], [], [], {}
    for forecast, target in zip(forecasts, targets, strict=True):
        hit = float(list(forecast).index(max(forecast)) == list(target).index(max(target)))
        pairs = list(zip(forecast, target, strict=True))
        hits.append(hit)
        losses.append(-sum(t * math.log(max(p, 1e-6)) for p, t in pairs))
        scores.append(sum((p - t) ** 2 for p, t in pairs))
        top = max(forecast)
        index = next(i for i in range(n_bins) if top <= (i + 1) / n_bins)
        bins.setdefault(index, []).append((top, hit))
    gaps = [
        abs(sum(top for top, _ in held) - sum(hit for _, hit in held)) for held in bins.values()
    ]
    n = len(hits)
    return MetricSummary(n, sum(hits) / n, sum(losses) / n, sum(scores) / n, sum(gaps) / n)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 12))
@settings(deadline=None, max_examples=60)
def test_summary_equals_the_definitions_read_as_loops(seed, n_decisions, most_outcomes):
    forecasts, targets = make_decisions(seed, n_decisions, most_outcomes)
    summary = summarise(pad_rows(forecasts), pad_rows(targets))
    expected = summary_by_loops(forecasts, targets)
    assert summary.n == expected.n
    for name in ("accuracy", "log_loss", "brier", "ece"):
        assert getattr(summary, name) == pytest.approx(getattr(expected, name), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 4), min_size=12, max_size=12))
@settings(deadline=None, max_examples=40)
def test_whole_weights_equal_repetition(seed, counts):
    counts[0] += 1
    forecasts, targets = make_decisions(seed, 12)
    p, t = pad_rows(forecasts), pad_rows(targets)
    for measure in MEASURES:
        repeated = measure(np.repeat(p, counts, axis=0), np.repeat(t, counts, axis=0))
        assert measure(p, t, weights=counts) == pytest.approx(repeated, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_order_and_padding_change_nothing(measure):
    forecasts, targets = make_decisions(3)
    p, t = pad_rows(forecasts), pad_rows(targets)
    order = np.random.default_rng(4).permutation(len(p))
    wider = ((0, 0), (0, 5))
    assert measure(p[order], t[order]) == pytest.approx(measure(p, t), abs=1e-12)
    assert measure(np.pad(p, wider), np.pad(t, wider)) == pytest.approx(measure(p, t), abs=1e-12)


def test_permuting_the_outcomes_of_every_decision_changes_nothing():
    rng = np.random.default_rng(5)
    p, t = rng.dirichlet(np.ones(6), 50), np.eye(6)[rng.integers(6, size=50)]
    order = rng.permutation(6)
    for measure in MEASURES:
        assert measure(p[:, order], t[:, order]) == pytest.approx(measure(p, t), abs=1e-12)


def test_a_perfect_forecast_of_hard_targets_loses_nothing():
    _, targets = make_decisions(6, soft=False)
    t = pad_rows(targets)
    assert summarise(t, t) == MetricSummary(len(t), 1.0, 0.0, 0.0, 0.0)


def test_the_target_itself_has_the_least_expected_loss():
    """Both scores are proper: no forecast beats the soft target that it is scored against."""
    forecasts, targets = make_decisions(7)
    p, t = pad_rows(forecasts), pad_rows(targets)
    assert (decision_log_losses(t, t) <= decision_log_losses(p, t) + 1e-12).all()
    assert (decision_brier_scores(t, t) <= decision_brier_scores(p, t)).all()


def test_an_impossible_answer_costs_a_finite_loss():
    assert log_loss([[1.0, 0.0]], [[0, 1]]) == pytest.approx(-math.log(LEAST_PROBABILITY))
    assert brier([[1.0, 0.0]], [[0, 1]]) == 2.0


def test_ties_go_to_the_first_outcome_on_both_sides():
    tied = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    assert decision_hits(tied, [[1, 0], [0, 1], [0.5, 0.5]]).tolist() == [1.0, 0.0, 1.0]


def test_bins_of_the_calibration_error_are_closed_above():
    """0.7 is the top of its bin and 0.7000001 the bottom of the next: they do not cancel."""
    p = [[0.7, 0.3], [0.7000001, 0.2999999]]
    assert ece(p, [[1, 0], [0, 1]]) == pytest.approx((0.3 + 0.7) / 2, abs=1e-6)
    assert ece(p, [[1, 0], [0, 1]], n_bins=1) == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("measure", [*MEASURES, decision_hits, summarise])
@pytest.mark.parametrize(
    ("probabilities", "targets"),
    [
        ([[0.5, np.nan]], [[1, 0]]),
        ([[0.5, 0.5]], [[np.nan, 0]]),
        ([[0.5, np.inf]], [[1, 0]]),
        ([[-0.1, 1.1]], [[1, 0]]),
        ([[0.5, 0.5]], [[1, 0, 0]]),
        ([0.5, 0.5], [1, 0]),
        (np.zeros((0, 2)), np.zeros((0, 2))),
    ],
)
def test_what_cannot_be_measured_is_refused(measure, probabilities, targets):
    with pytest.raises(ValueError, match=r"shapes|finite"):
        measure(probabilities, targets)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
@pytest.mark.parametrize("measure", MEASURES)
def test_weights_that_mean_nothing_are_refused(measure, weights):
    with pytest.raises(ValueError, match="weights"):
        measure([[0.5, 0.5]] * 2, [[1, 0]] * 2, weights=weights)


def test_pad_rows_keeps_every_value_and_refuses_empty_rows():
    rows = [[0.1, 0.9], [0.2, 0.3, 0.5], [1.0]]
    padded = pad_rows(rows)
    assert padded.shape == (3, 3)
    assert [row[: len(kept)].tolist() for row, kept in zip(padded, rows, strict=True)] == rows
    assert padded.sum() == pytest.approx(3.0)
    for bad in ([], [[]], [[[0.5]]]):
        with pytest.raises(ValueError, match="row"):
            pad_rows(bad)
