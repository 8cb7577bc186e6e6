"""Measures over records: against loops and hand-worked examples, and the laws of their intervals."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from steelyard.calibration.intervals import mean_interval, proportion_interval
from steelyard.evaluations.measures.records import UnmeasurableError, measure_records
from steelyard.evaluations.measures.sampling import measures_of, ratio_measures
from steelyard.evaluations.measures.summary import evaluation_detail, length_buckets, metrics_of
from steelyard.evaluations.wire import EvaluationDetail, Latency
from steelyard.proof.differences import Bootstrap
from steelyard.wire.measures import Measure
from support.models.scored_records import (
    QUICK,
    ScoredRecord,
    ece_by_loops,
    make_rows,
    mean,
    records_from_rows,
    row_measures,
)


def figures(struct):
    return {
        name: value
        for name in struct.__struct_fields__
        if isinstance(value := getattr(struct, name), Measure)
    }


@given(st.integers(0, 2**32 - 1), st.integers(1, 25))
@settings(deadline=None, max_examples=25)
def test_metrics_of_targets_equal_loops(seed, n_contexts):
    rows = make_rows(seed, n_contexts)
    found = metrics_of(records_from_rows(rows))
    assert found.n == len(rows)
    for name in ("accuracy", "loss", "brier"):
        expected = mean(row_measures(row)[name] for row in rows)
        assert getattr(found, name) == pytest.approx(expected, abs=1e-12)
    assert found.ece == pytest.approx(ece_by_loops(rows), abs=1e-12)
    assert msgspec.to_builtins(found).keys() == {"n", "accuracy", "loss", "brier", "ece"}


def test_metrics_of_rewards_and_the_median_latency():
    rows = make_rows(2, supervision="rewards")
    found = metrics_of(records_from_rows(rows), latencies_ms=[3.0, 1.0, 10.0, 4.0])
    expected = mean(row_measures(row)["expected_reward"] for row in rows)
    assert msgspec.to_builtins(found) == {
        "n": len(rows),
        "expected_reward": pytest.approx(expected),
        "latency_ms": 3.5,
    }
    with pytest.raises(UnmeasurableError, match="latency"):
        metrics_of(records_from_rows(rows), latencies_ms=[math.nan])


def test_a_detail_has_the_times_of_its_requests():
    records = records_from_rows(make_rows(2))
    detail = evaluation_detail(
        records, latencies_ms=[float(n) for n in range(101)], input_tokens=7, bootstrap=QUICK
    )
    assert detail.latency_ms == Latency(p50=50.0, p95=95.0, n=101)
    assert detail.metrics.latency_ms == 50.0
    assert detail.input_tokens == 7
    unknown = evaluation_detail(records, latencies_ms=[], bootstrap=QUICK)
    assert (unknown.latency_ms, unknown.input_tokens) == (None, None)


def test_every_measure_of_every_set_equals_loops():
    rows = make_rows(3)
    lengths = [f"{index % 3}" for index in range(len(rows))]
    detail = evaluation_detail(records_from_rows(rows), slices={"third": lengths}, bootstrap=QUICK)
    by_decision = {
        decision_id: [row for row in rows if row.decision_id == decision_id]
        for decision_id in ("spam", "topic", "tone")
    }
    by_third = {
        value: [row for row, of in zip(rows, lengths, strict=True) if of == value]
        for value in "012"
    }
    sets = [(detail.overall, rows)]
    sets += [(held.metrics, by_decision[held.decision_id]) for held in detail.decisions]
    sets += [(held.metrics, by_third[held.value]) for held in detail.slices[1].slices]
    assert len(sets) == 7
    for found, held in sets:
        assert (found.n, found.contexts) == (len(held), len({row.context_sha256 for row in held}))
        for name in ("accuracy", "loss", "brier"):
            expected = mean(row_measures(row)[name] for row in held)
            assert getattr(found, name).value == pytest.approx(expected, abs=1e-12)
        assert found.ece.value == pytest.approx(ece_by_loops(held), abs=1e-12)
        for measure in figures(found).values():
            assert measure.n == len(held)
            assert measure.low <= measure.value <= measure.high
    assert [table.by for table in detail.slices] == ["kind", "third"]


def test_rewards_leave_decisions_that_earn_the_same_out():
    rows = make_rows(4, supervision="rewards")
    found = evaluation_detail(records_from_rows(rows), bootstrap=QUICK)
    told = [row_measures(row) for row in rows]
    scaled = [measures["scaled_reward"] for measures in told if "scaled_reward" in measures]
    assert len(scaled) < len(rows)
    assert found.overall.scaled_reward.value == pytest.approx(mean(scaled))
    assert found.overall.scaled_reward.n == len(scaled)
    assert found.overall.expected_reward.n == len(rows)
    wire = msgspec.to_builtins(found)
    assert "reliability" not in wire
    assert "outcomes" not in wire["decisions"][0]
    assert wire["coverage_curve"][0].keys() == {
        "threshold",
        "n",
        "coverage",
        "expected_reward",
        "scaled_reward",
    }


def test_reliability_bins_sum_up_to_the_accuracy_and_the_calibration_error():
    rows = make_rows(5, 40)
    detail = evaluation_detail(records_from_rows(rows), bootstrap=QUICK)
    held = [row for row in detail.reliability if row.n]
    n = sum(row.n for row in held)
    assert n == len(rows)
    assert sum(row.n * row.accuracy.value for row in held) / n == pytest.approx(
        detail.metrics.accuracy
    )
    gaps = [row.n * abs(row.accuracy.value - row.mean_top_probability) for row in held]
    assert sum(gaps) / n == pytest.approx(detail.metrics.ece)
    empty = [row for row in detail.reliability if not row.n]
    assert all(row.accuracy is None and row.mean_top_probability is None for row in empty)


def test_outcomes_of_single_rows_have_no_confusion():
    def records(n_rows):
        rows = [
            ScoredRecord(
                f"c{i}",
                "which",
                "single",
                (f"a{i}", f"b{i}"),
                (0.6, 0.4),
                (float(i % 2), float(1 - i % 2)),
            )
            for i in range(n_rows)
        ]
        return records_from_rows(rows)

    (told,) = evaluation_detail(records(127), bootstrap=QUICK).decisions
    assert len(told.outcomes) == len(told.confusion.outcomes) == 254
    (untold,) = evaluation_detail(records(128), bootstrap=QUICK).decisions
    assert (untold.outcomes, untold.confusion) == (UNSET, UNSET)
    assert untold.metrics.accuracy.n == 128


def test_a_detail_survives_the_wire():
    detail = evaluation_detail(records_from_rows(make_rows(6, 8)), bootstrap=QUICK)
    data = msgspec.json.encode(detail)
    assert b"NaN" not in data
    assert msgspec.json.decode(data, type=EvaluationDetail) == detail


@pytest.mark.parametrize("supervision", ["targets", "rewards"])
def test_permuting_records_changes_nothing(supervision):
    rows = make_rows(7, supervision=supervision)
    shuffled = random.Random(1).sample(rows, len(rows))
    slices = {"context": [row.context_sha256[-1] for row in rows]}
    moved = {"context": [row.context_sha256[-1] for row in shuffled]}
    one = evaluation_detail(records_from_rows(rows), slices=slices, bootstrap=QUICK)
    two = evaluation_detail(records_from_rows(shuffled), slices=moved, bootstrap=QUICK)
    assert_close(msgspec.to_builtins(one), msgspec.to_builtins(two))


def assert_close(one, two):
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_close(one[key], two[key])
    elif isinstance(one, list):
        assert len(one) == len(two)
        for left, right in zip(one, two, strict=True):
            assert_close(left, right)
    elif isinstance(one, float):
        assert one == pytest.approx(two, abs=1e-9)
    else:
        assert one == two


def test_clustering_by_context_widens_the_intervals_of_duplicated_rows():
    rows = make_rows(8, 60, decisions={"spam": ("binary", ("yes", "no"))})
    copies = [row for row in rows for _ in range(9)]
    alone = evaluation_detail(records_from_rows(rows)).overall
    together = evaluation_detail(records_from_rows(copies)).overall
    apart = [
        replace(row, context_sha256=f"{row.context_sha256}-{copy}")
        for row in rows
        for copy in range(9)
    ]
    naive = evaluation_detail(records_from_rows(apart)).overall
    for name in ("accuracy", "loss", "brier"):
        width = {
            key: getattr(found, name).high - getattr(found, name).low
            for key, found in (("alone", alone), ("together", together), ("naive", naive))
        }
        # Nine copies of a row tell no more than the row: as wide as alone, three times the naive.
        assert width["together"] == pytest.approx(width["alone"], rel=0.1)
        assert width["together"] > 2.5 * width["naive"]


def test_a_mean_has_the_interval_of_possible_losses():
    rows = make_rows(9)
    measures = measure_records(records := records_from_rows(rows))
    found = measures_of(measures, records.context_codes, Bootstrap(seed=5)).loss
    worst = -math.log(min(min(row.probabilities) for row in rows))
    contexts = [row.context_sha256 for row in rows]
    expected = mean_interval(
        measures.values["loss"], clusters=contexts, least=0.0, most=worst, seed=5
    )
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_proportion_of_independent_decisions_has_the_exact_interval():
    rows = make_rows(10, decisions={"spam": ("binary", ("yes", "no"))})
    found = evaluation_detail(records_from_rows(rows), bootstrap=QUICK).overall.accuracy
    hits = sum(row_measures(row)["accuracy"] for row in rows)
    expected = proportion_interval(hits, len(rows))
    assert (found.low, found.high) == (expected.low, expected.high)


def test_unanimous_clusters_count_once_each():
    """20 right decisions on 4 contexts are as sure as 4 right decisions."""
    sums, counted = np.full((4, 1), 5.0), np.full((4, 1), 5.0)
    (found,) = ratio_measures(sums, counted, QUICK, are_proportions=[True])
    assert found.low == pytest.approx(proportion_interval(4, 4).low, abs=0.02)
    assert (found.value, found.high, found.n) == (1.0, 1.0, 20)


def test_few_contexts_that_are_all_alike_promise_no_certainty():
    sums, counted = np.array([[1.0, 2.0]] * 3), np.array([[2.0, 2.0]] * 3)
    share, mean_of = ratio_measures(sums, counted, QUICK, are_proportions=[True, False])
    assert share.low < 0.2
    assert share.high > 0.8
    assert (mean_of.value, mean_of.low, mean_of.high) == (1.0, None, None)
    many = ratio_measures(
        np.repeat(sums, 10, axis=0),
        np.repeat(counted, 10, axis=0),
        QUICK,
        are_proportions=[False, False],
    )[1]
    assert (many.low, many.high) == (None, None)


def test_several_decisions_have_a_coverage_curve_each():
    detail = evaluation_detail(records_from_rows(make_rows(3)), bootstrap=QUICK)
    assert sum(one.coverage_curve[0].n for one in detail.decisions) == detail.coverage_curve[0].n
    alone = make_rows(3, decisions={"spam": ("binary", ("yes", "no"))})
    [only] = evaluation_detail(records_from_rows(alone), bootstrap=QUICK).decisions
    assert only.coverage_curve is UNSET


def test_one_context_has_no_interval_of_a_mean_and_nothing_has_no_figure():
    sums = np.array([[3.0, 0.0]])
    found = ratio_measures(sums, np.array([[2.0, 0.0]]), QUICK, are_proportions=[False, False])
    assert found == [Measure(value=1.5, low=None, high=None, n=2), None]


@pytest.mark.parametrize("n_per_context", [1, 4])
def test_intervals_cover_the_truth_about_as_often_as_they_say(n_per_context):
    """Of 200 samples whose contexts vary, at least 90 % of the intervals hold the true accuracy."""
    rng = np.random.default_rng(11)
    covered = 0
    for seed in range(200):
        chance = np.repeat(rng.beta(4, 2, size=80), n_per_context)
        hits = (rng.random(chance.size) < chance).astype(float).reshape(80, n_per_context)
        sums, counted = hits.sum(axis=1)[:, None], np.full((80, 1), float(n_per_context))
        bootstrap = Bootstrap(n_resamples=400, seed=seed)
        (found,) = ratio_measures(sums, counted, bootstrap, are_proportions=[True])
        covered += found.low <= 2 / 3 <= found.high
    assert covered >= 180


def test_slices_skip_rows_without_a_value_and_list_the_largest_first():
    rows = make_rows(12, 4)
    values = ["b", "a", "a", None] * 3
    detail = evaluation_detail(records_from_rows(rows), slices={"x": values}, bootstrap=QUICK)
    table = detail.slices[1]
    assert [(held.value, held.metrics.n) for held in table.slices] == [("a", 6), ("b", 3)]
    many = [str(index) for index in range(len(rows) * 10)]
    big = evaluation_detail(
        records_from_rows(rows * 10), slices={"x": many}, bootstrap=QUICK
    ).slices[1]
    assert (len(big.slices), big.unlisted) == (100, 20)
    with pytest.raises(UnmeasurableError, match="3 values for 12 records"):
        evaluation_detail(records_from_rows(rows), slices={"x": ["a"] * 3}, bootstrap=QUICK)


def test_the_most_asked_decisions_are_listed_and_the_rest_counted():
    asked = {f"d{index:03d}": ("binary", ("yes", "no")) for index in range(103)}
    rows = make_rows(13, 1, decisions=asked) + make_rows(14, 3, decisions={"often": asked["d000"]})
    detail = evaluation_detail(records_from_rows(rows), bootstrap=QUICK)
    listed = [held.decision_id for held in detail.decisions]
    assert listed == ["often", *(f"d{index:03d}" for index in range(99))]
    assert detail.decisions_unlisted == 4


def test_buckets_of_length_hold_every_length():
    assert length_buckets([0, 256, 257, 1024, 4097, 16384, 16385]) == [
        "up to 64 tokens",
        "65 to 256 tokens",
        "257 to 1024 tokens",
        "257 to 1024 tokens",
        "4097 to 16384 tokens",
        "4097 to 16384 tokens",
        "over 16384 tokens",
    ]
