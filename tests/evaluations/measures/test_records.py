"""The measures of each record, against the definitions read as loops; refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.evaluations.measures.records import (
    UnmeasurableError,
    job_records,
    measure_records,
    records_from_columns,
)
from support.models.scored_records import ScoredRecord, make_rows, records_from_rows, row_measures


def record(probabilities, *, targets=None, rewards=None, outcomes=None):
    outcomes = outcomes or tuple("abcdefgh"[: len(probabilities)])
    return ScoredRecord("sha", "d", "single", outcomes, probabilities, targets, rewards)


def measured(row):
    measures = measure_records(records_from_rows([row]))
    return {
        name: float(column[0])
        for name, column in measures.values.items()
        if measures.counted[name][0]
    }


@given(st.integers(0, 2**32 - 1), st.integers(1, 15), st.sampled_from(["targets", "rewards"]))
@settings(deadline=None, max_examples=40)
def test_every_measure_equals_its_definition_read_as_a_loop(seed, n_contexts, supervision):
    rows = make_rows(seed, n_contexts, supervision=supervision)
    measures = measure_records(records_from_rows(rows))
    for index, row in enumerate(rows):
        expected = row_measures(row)
        counted = {name for name, column in measures.counted.items() if column[index]}
        assert counted == expected.keys()
        for name, value in expected.items():
            assert measures.values[name][index] == pytest.approx(value, abs=1e-12)


def test_measures_of_targets_by_hand():
    found = measured(record((0.7, 0.2, 0.1), targets=(0.0, 1.0, 0.0)))
    assert found == {
        "accuracy": 0.0,
        "loss": pytest.approx(-math.log(0.2)),
        "brier": pytest.approx(0.49 + 0.64 + 0.01),
    }
    soft = measured(record((0.5, 0.5), targets=(0.75, 0.25)))
    assert soft["loss"] == pytest.approx(math.log(2))
    assert soft["brier"] == pytest.approx(0.125)
    assert soft["accuracy"] == 1.0


def test_the_loss_is_clipped_at_a_millionth():
    assert measured(record((1.0, 0.0), targets=(0.0, 1.0)))["loss"] == pytest.approx(
        6 * math.log(10)
    )


def test_measures_of_rewards_by_hand():
    found = measured(record((0.5, 0.3, 0.2), rewards=(-1.0, 3.0, 1.0)))
    assert found == {
        "expected_reward": pytest.approx(-0.5 + 0.9 + 0.2),
        "scaled_reward": pytest.approx((0.6 + 1) / 4),
        "picked_best": 0.0,
    }
    tied = measured(record((0.2, 0.5, 0.3), rewards=(2.0, 2.0, 0.0)))
    assert tied["picked_best"] == 1.0


def test_equal_rewards_are_left_out_of_accuracy():
    assert measured(record((0.9, 0.1), rewards=(2.0, 2.0))) == {"expected_reward": 2.0}


@pytest.mark.parametrize("rewards", [(-1.7e308, 1.7e308), (5e-324, 0.0), (1e308, 1e308)])
def test_rewards_at_the_ends_of_numbers_measure_finite(rewards):
    found = measured(record((0.5, 0.5), rewards=rewards))
    assert all(map(math.isfinite, found.values()))
    assert 0 <= found.get("scaled_reward", 0) <= 1


def test_records_keep_their_order_with_any_outcome_counts():
    rows = make_rows(1, 5)
    records = records_from_rows(rows)
    assert [records.outcomes_of(i) for i in range(len(records))] == [row.outcomes for row in rows]
    assert [tuple(records.probabilities_of(i)) for i in range(len(records))] == [
        row.probabilities for row in rows
    ]
    seen = np.sort(np.concatenate([chosen for chosen, _, _ in records.batches()]))
    assert seen.tolist() == list(range(len(rows)))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (record((math.nan, 0.5), targets=(1, 0)), "finite"),
        (record((0.5, 0.5), targets=(math.nan, 0)), "finite"),
        (record((0.5, 0.5), rewards=(math.inf, 0)), "finite"),
        (record((None, 0.5), targets=(1, 0)), "missing"),
        (record((0.5, 0.2), targets=(1, 0)), "sum to 1"),
        (record((1.2, -0.2), targets=(1, 0)), "sum to 1"),
        (record((0.5, 0.5), targets=(1, 1)), "sum to 1"),
        (record((0.5, 0.5), targets=(1,)), "1 targets for 2 outcomes"),
        (record((0.5, 0.5), rewards=(1, 2, 3)), "3 rewards for 2 outcomes"),
    ],
)
def test_what_cannot_be_measured_is_refused(row, message):
    with pytest.raises(UnmeasurableError, match=message):
        records_from_rows([row])


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(UnmeasurableError, match="at least one record"):
        records_from_rows([])
    with pytest.raises(UnmeasurableError, match="one of each"):
        records_from_columns(
            contexts=["a"],
            decision_ids=["d"],
            kinds=["single"],
            outcomes=[("a", "b")],
            probabilities=[],
            labels=[[1, 0]],
            supervision="targets",
        )


def test_job_records_have_the_fields_of_the_contract():
    row = record((0.25, 0.75), targets=(0.0, 1.0))
    (shown,) = msgspec.to_builtins(job_records(records_from_rows([row])))
    assert shown == {
        "context_sha256": "sha",
        "decision_id": "d",
        "probabilities": {"a": 0.25, "b": 0.75},
        "targets": {"a": 0.0, "b": 1.0},
        "loss": pytest.approx(-math.log(0.75)),
        "brier": pytest.approx(0.125),
        "accuracy": 1.0,
    }
    rewarded = [
        record((0.25, 0.75), rewards=(1.0, 1.0)),
        replace(record((0.25, 0.75), rewards=(1.0, 3.0)), decision_id="e"),
    ]
    equal, different = msgspec.to_builtins(job_records(records_from_rows(rewarded)))
    assert equal.keys() == {
        "context_sha256",
        "decision_id",
        "probabilities",
        "rewards",
        "expected_reward",
    }
    assert different.keys() - equal.keys() == {"scaled_reward", "picked_best"}
    assert different["scaled_reward"] == 0.75
    page = job_records(records_from_rows(rewarded), start=1, stop=9)
    assert [shown.decision_id for shown in page] == ["e"]
