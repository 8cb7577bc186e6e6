"""Thresholds of one outcome: by precision, certified, and by costs."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.calibration.certify import certify_threshold
from steelyard.errors import InvalidRequestError
from steelyard.evaluations.measures.records import measure_records, records_from_columns
from steelyard.evaluations.measures.thresholds import outcome_threshold
from steelyard.evaluations.thresholds_wire import ThresholdTrial
from steelyard.proof.differences import Bootstrap

QUICK = Bootstrap(n_resamples=50)


def records_of(n, *, seed=0):
    """Answers about fraud: an answer from .8 on is hardly ever wrong, a lower one half the time."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.5, 1, n)
    is_fraud = rng.uniform(size=n) < np.where(p >= 0.8, 0.995, 0.5)
    return records_from_columns(
        contexts=[f"{row:06d}" for row in range(n)],
        decision_ids=["payment"] * n,
        kinds=["single"] * n,
        outcomes=[("fraud", "fine")] * n,
        probabilities=list(np.stack([p, 1 - p], axis=1)),
        labels=list(np.stack([is_fraud, ~is_fraud], axis=1).astype(float)),
        supervision="targets",
    )


def find(records, **trial):
    trial = ThresholdTrial(decision_id="payment", **{"outcome": "fraud", **trial})
    return outcome_threshold(records, measure_records(records), trial, QUICK)


def test_a_precision_is_certified_as_a_bound_is():
    records = records_of(1000)
    result = find(records, precision=0.95)
    measures = measure_records(records)
    same = certify_threshold(
        measures.p_top, measures.values["accuracy"], records.context_codes, error=0.05
    )
    assert (result.threshold, result.missing_rows) == (same.threshold, 0)
    assert (result.certified.precision, result.certified.confidence) == (0.95, 0.95)
    point = result.at_threshold
    assert point.precision.value >= 0.95
    is_sent = measures.p_top >= result.threshold
    assert point.sent == is_sent.sum()
    assert point.recall.n == sum(label[0] for label in records.labels.reshape(-1, 2))
    assert [each.threshold for each in result.points] == [index / 100 for index in range(101)]


def test_too_few_rows_certify_nothing_and_say_how_many_would():
    result = find(records_of(40), precision=0.95)
    assert result.certified is None
    assert result.missing_rows > 0
    assert result.at_threshold.precision.value >= 0.95
    nothing = find(records_of(40), precision=0.95, outcome="fine")
    assert (nothing.threshold, nothing.missing_rows) == (None, None)


def test_the_cheapest_threshold_is_that_of_all():
    records = records_of(300)
    result = find(records, wrong_cost=4.0, abstain_cost=1.0)
    costs = [point.cost.value for point in result.points]
    assert result.at_threshold.cost.value <= min(costs) + 1e-9
    assert 0.75 < result.threshold < 0.85
    assert find(records, wrong_cost=0.0, abstain_cost=1.0).threshold == pytest.approx(
        measure_records(records).p_top.min()
    )
    assert find(records, wrong_cost=1.0, abstain_cost=0.0).at_threshold.cost.value == 0


@pytest.mark.parametrize(
    ("trial", "path"),
    [
        ({"outcome": "nothing"}, "outcome"),
        ({"wrong_cost": 1.0}, "abstain_cost"),
        ({"precision": 0.9, "wrong_cost": 1.0, "abstain_cost": 1.0}, "wrong_cost"),
    ],
)
def test_trials_that_do_not_fit(trial, path):
    with pytest.raises(InvalidRequestError) as caught:
        find(records_of(5), **trial)
    assert [each.path[-1] for each in caught.value.violations] == [path]


def test_most_thresholds_that_are_certified_keep_to_their_precision():
    missed = 0
    for seed in range(30):
        result = find(records_of(150, seed=seed), precision=0.9)
        if result.certified is not None:
            t = result.threshold
            low = max(0.0, 0.8 - t)
            true = (0.5 * low + 0.995 * (1 - max(t, 0.8))) / (1 - t)
            missed += true < 0.9
    assert missed <= 5
