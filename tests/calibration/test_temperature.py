from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.calibration.temperature import (
    BUCKETS,
    MAX_FITTED,
    MIN_FITTED,
    TemperatureTable,
    fit_temperature,
    fit_temperature_table,
    outcome_bucket,
)
from support.decisions.strategies import few

rows = st.lists(st.floats(-30, 30), min_size=2, max_size=50)


def softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    weights = np.exp(logits / temperature - (logits / temperature).max())
    return weights / weights.sum()


def make_logits(seed: int, count: int, scale: float = 2.0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(0, scale, rng.integers(2, 30)) for _ in range(count)]


def mean_log_loss(logits: list[np.ndarray], targets: list[Any], temperature: float) -> float:
    losses = [
        -float(np.dot(target, np.log(softmax(row, temperature) + 1e-300)))
        for row, target in zip(logits, targets, strict=True)
    ]
    return float(np.mean(losses))


@pytest.mark.parametrize("temperature", [0.07, 0.5, 1.0, 1.7, 6.0, 15.0])
def test_the_temperature_that_made_soft_targets_is_found(temperature):
    logits = make_logits(1, 200)
    targets = [softmax(row, temperature) for row in logits]
    assert fit_temperature(logits, targets) == pytest.approx(temperature, rel=1e-6)


@few
@given(st.integers(0, 2**32 - 1))
def test_no_other_temperature_has_a_lower_loss(seed):
    rng = np.random.default_rng(seed)
    logits = make_logits(seed, 30, scale=float(rng.uniform(0.1, 20)))
    targets = [np.eye(row.size)[rng.choice(row.size, p=softmax(row, 2))] for row in logits]
    fitted = fit_temperature(logits, targets)
    assert MIN_FITTED <= fitted <= MAX_FITTED
    best = mean_log_loss(logits, targets, fitted)
    grid = np.geomspace(MIN_FITTED, MAX_FITTED, 60)
    assert all(best <= mean_log_loss(logits, targets, other) + 1e-9 for other in grid)


@few
@given(st.integers(0, 1000), st.floats(0.5, 2), st.floats(-50, 50))
def test_scaling_logits_scales_the_fit_and_shifting_them_does_not(seed, factor, shift):
    logits = make_logits(seed, 20)
    targets = [softmax(row, 1.5) for row in logits]
    scaled = fit_temperature([row * factor + shift for row in logits], targets)
    assert scaled == pytest.approx(1.5 * factor, rel=1e-6)


def test_repeating_decisions_changes_nothing():
    logits = make_logits(3, 40)
    targets = [np.eye(row.size)[0] for row in logits]
    once = fit_temperature(logits, targets)
    assert fit_temperature(logits * 3, targets * 3) == pytest.approx(once, rel=1e-8)


def test_samples_that_say_nothing_or_everything_end_at_a_bound():
    always_right = [[3.0, 0.0]] * 5
    assert fit_temperature(always_right, [[1, 0]] * 5) == MIN_FITTED
    assert fit_temperature(always_right, [[0, 1]] * 5) == MAX_FITTED
    assert fit_temperature([[2.0, 2.0]] * 5, [[1, 0]] * 5) == 1.0


def test_many_decisions_of_various_sizes():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 60, 20_000)
    logits = [row.astype(np.float32) for row in (rng.normal(0, 2, size) for size in sizes)]
    targets = [softmax(row.astype(np.float64), 1.3) for row in logits]
    assert fit_temperature(logits, targets) == pytest.approx(1.3, rel=1e-6)


@pytest.mark.parametrize(
    ("logits", "targets", "match"),
    [
        ([], [], "at least one"),
        ([[1, 2]], [], "1 rows of logits"),
        ([[1, 2]], [[1, 0, 0]], "Decision 0"),
        ([[1]], [[1]], "Decision 0"),
        ([[[1, 2]]], [[[1, 0]]], "Decision 0"),
        ([[1, 2]], [[0.5, 0.6]], "distribution"),
        ([[1, 2]], [[-0.5, 1.5]], "distribution"),
        ([[1, 2]], [[float("nan"), 1]], "distribution"),
        ([[1, float("inf")]], [[1, 0]], "finite"),
    ],
)
def test_rows_that_do_not_fit_are_refused(logits, targets, match):
    with pytest.raises(ValueError, match=match):
        fit_temperature(logits, targets)


def test_a_table_fits_each_group_and_pools_small_ones():
    rng = np.random.default_rng(5)
    twos = [rng.normal(0, 2, 2) for _ in range(60)]
    tens = [rng.normal(0, 2, 10) for _ in range(60)]
    few_fours = [rng.normal(0, 2, 4) for _ in range(3)]
    logits = twos + tens + few_fours
    targets = [softmax(row, 0.8 if row.size == 2 else 2.5) for row in logits]
    table = fit_temperature_table(["single"] * len(logits), logits, targets)
    pooled = fit_temperature(logits, targets)
    assert table.temperature("single", 2) == pytest.approx(0.8, rel=1e-6)
    assert table.temperature("single", 10) == pytest.approx(2.5, rel=1e-6)
    assert table.temperature("single", 4) == pooled
    assert table.temperature("single", 200) == pooled
    assert table.temperature("binary", 2) == 1.0


@pytest.mark.parametrize(
    ("n_outcomes", "bucket"),
    [
        (2, "2"),
        (3, "3-5"),
        (5, "3-5"),
        (6, "6-12"),
        (12, "6-12"),
        (13, "13-40"),
        (40, "13-40"),
        (41, "41+"),
        (255, "41+"),
    ],
)
def test_buckets(n_outcomes, bucket):
    assert outcome_bucket(n_outcomes) == bucket


def test_one_outcome_is_no_decision():
    with pytest.raises(ValueError, match="2 outcomes or more"):
        outcome_bucket(1)


@few
@given(
    st.dictionaries(
        st.sampled_from(["single", "binary", "ordinal"]),
        st.dictionaries(st.sampled_from([name for name, _ in BUCKETS]), st.floats(0.05, 20)),
    )
)
def test_a_table_survives_json(temperatures):
    table = TemperatureTable(temperatures)
    assert TemperatureTable.from_dict(json.loads(json.dumps(table.to_dict()))) == table


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"temperatures": [1]},
        {"temperatures": {"single": 1.0}},
        {"temperatures": {"single": {"2-3": 1.0}}},
        {"temperatures": {"single": {"2": 0}}},
        {"temperatures": {"single": {"2": float("nan")}}},
        {"temperatures": {"single": {"2": float("inf")}}},
        {"temperatures": {"single": {"2": True}}},
        {"temperatures": {"single": {"2": "1"}}},
    ],
)
def test_invalid_tables_are_refused(value):
    with pytest.raises(ValueError, match=r"temperature|group"):
        TemperatureTable.from_dict(value)


@few
@given(rows, st.floats(0.05, 20))
def test_probabilities_are_the_softmax_of_scaled_logits(logits, temperature):
    table = TemperatureTable({"single": dict.fromkeys([n for n, _ in BUCKETS], temperature)})
    probabilities = table.probabilities(np.array(logits, dtype=np.float32), "single")
    assert probabilities.dtype == np.float64
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    expected = softmax(np.array(logits, dtype=np.float32).astype(np.float64), temperature)
    assert probabilities == pytest.approx(expected, abs=1e-12)
    logs = table.log_probabilities(np.array(logits, dtype=np.float32), "single")
    assert np.exp(logs) == pytest.approx(probabilities, abs=1e-12)


def test_huge_logits_do_not_overflow():
    assert TemperatureTable().probabilities([3e38, -3e38], "single").tolist() == [1.0, 0.0]


@pytest.mark.parametrize("logits", [[1, float("nan")], [[1, 2]], [1, float("inf")]])
def test_logits_that_are_no_finite_row_are_refused(logits):
    with pytest.raises(ValueError, match="finite"):
        TemperatureTable().probabilities(logits, "single")
