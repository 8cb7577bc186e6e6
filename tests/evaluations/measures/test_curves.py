"""Curves over thresholds, against one threshold at a time by hand."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.evaluations.measures.curves import (
    THRESHOLDS,
    binary_cost_curve,
    coverage_curve,
    yes_curve,
)
from steelyard.evaluations.measures.records import measure_records
from support.models.scored_records import (
    QUICK,
    ScoredRecord,
    make_rows,
    mean,
    records_from_rows,
    row_measures,
    table_of,
)

SPAM = {"spam": ("binary", ("yes", "no"))}


def costs_of(rows, fp, fn):
    return binary_cost_curve(table_of(rows), false_positive=fp, false_negative=fn, bootstrap=QUICK)


def yes(index, p, *, is_yes):
    targets = (1.0, 0.0) if is_yes else (0.0, 1.0)
    return ScoredRecord(f"c{index}", "spam", "binary", ("yes", "no"), (p, 1 - p), targets)


@pytest.mark.parametrize("supervision", ["targets", "rewards"])
def test_coverage_equals_one_threshold_at_a_time(supervision):
    rows = make_rows(1, 20, supervision=supervision)
    records = records_from_rows(rows)
    curve = coverage_curve(measure_records(records), records.context_codes, QUICK)
    assert [point.threshold for point in curve] == list(THRESHOLDS)
    for point in curve:
        kept = [row for row in rows if max(row.probabilities) >= point.threshold]
        assert point.n == len(kept)
        assert point.coverage == pytest.approx(len(kept) / len(rows))
        name = "accuracy" if supervision == "targets" else "expected_reward"
        measure = getattr(point, name)
        if kept:
            assert measure.value == pytest.approx(mean(row_measures(row)[name] for row in kept))
            assert measure.n == len(kept)
        else:
            assert measure is None
    assert curve[0].coverage == 1.0


def test_yes_by_threshold_equals_counting():
    rows = make_rows(2, 50, decisions=SPAM)
    for point in yes_curve(table_of(rows), QUICK):
        said = [row.probabilities[0] >= point.threshold for row in rows]
        true = [row.targets[0] >= row.targets[1] for row in rows]
        both = sum(a and b for a, b in zip(said, true, strict=True))
        assert point.predicted == sum(said)
        assert point.recall.value == pytest.approx(both / sum(true))
        assert point.f1.value == pytest.approx(2 * both / (sum(said) + sum(true)))
        if sum(said):
            assert point.precision.value == pytest.approx(both / sum(said))
        else:
            assert point.precision is None


def test_the_cost_of_a_threshold_by_hand():
    rows = [
        yes(0, 0.9, is_yes=True),
        yes(1, 0.6, is_yes=False),
        yes(2, 0.3, is_yes=True),
        yes(3, 0.1, is_yes=False),
    ]
    curve = costs_of(rows, 1.0, 4.0)
    cost = {point.threshold: point.cost.value for point in curve.points}
    assert cost[0.0] == pytest.approx(2 / 4)
    assert cost[0.2] == pytest.approx(1 / 4)
    assert cost[0.5] == pytest.approx(5 / 4)
    assert cost[0.7] == pytest.approx(4 / 4)
    assert cost[1.0] == pytest.approx(8 / 4)
    assert curve.best_threshold == 0.11
    assert curve.calibrated_threshold == pytest.approx(0.2)


def test_thresholds_resampled_in_parts_equal_all_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    chances = rng.random(60)
    rows = [yes(index, float(p), is_yes=bool(rng.random() < p)) for index, p in enumerate(chances)]

    whole = costs_of(rows, 1.0, 4.0)
    monkeypatch.setattr("steelyard.evaluations.measures.curves._CELLS_AT_A_TIME", 60 * 7)
    parts = costs_of(rows, 1.0, 4.0)
    assert [point.threshold for point in parts.points] == list(THRESHOLDS)
    for mine, theirs in zip(parts.points, whole.points, strict=True):
        assert mine.cost.value == pytest.approx(theirs.cost.value)
        assert mine.cost.low == pytest.approx(theirs.cost.low)
        assert mine.cost.high == pytest.approx(theirs.cost.high)


def test_a_soft_target_costs_its_share():
    rows = [
        ScoredRecord(f"c{index}", "spam", "binary", ("yes", "no"), (0.6, 0.4), (0.6, 0.4))
        for index in range(20)
    ]
    curve = costs_of(rows, 10.0, 1.0)
    cost = {point.threshold: point.cost.value for point in curve.points}
    assert cost[0.5] == pytest.approx(0.4 * 10.0)
    assert cost[0.7] == pytest.approx(0.6 * 1.0)
    assert curve.best_threshold > 0.6


def test_a_calibrated_forecaster_costs_least_near_the_calibrated_threshold():
    rng = np.random.default_rng(3)
    chances = rng.random(4000)
    rows = [yes(index, float(p), is_yes=bool(rng.random() < p)) for index, p in enumerate(chances)]
    curve = costs_of(rows, 1.0, 3.0)
    assert curve.calibrated_threshold == 0.25
    assert abs(curve.best_threshold - 0.25) < 0.1


@pytest.mark.parametrize(
    ("fp", "fn"), [(-1.0, 1.0), (0.0, 0.0), (float("nan"), 1.0), (1.0, float("inf"))]
)
def test_costs_that_mean_nothing_are_refused(fp, fn):
    with pytest.raises(ValueError, match="Costs"):
        costs_of([yes(0, 0.5, is_yes=True)], fp, fn)


def test_only_a_binary_decision_has_a_yes():
    rows = make_rows(4, 3, decisions={"topic": ("single", ("a", "b"))})
    with pytest.raises(ValueError, match="binary"):
        yes_curve(table_of(rows), QUICK)
