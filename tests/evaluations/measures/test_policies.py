"""The actions of a policy: the same choices as a decide call's, and their cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.decisions.policy import Policy, choose_action
from steelyard.decisions.wire import ABSTAIN as RESERVED
from steelyard.errors import InvalidRequestError
from steelyard.evaluations.measures.policies import (
    ABSTAIN,
    acted_costs,
    policy_cost_curve,
    policy_report,
    rows_of_decision,
)
from steelyard.evaluations.measures.records import measure_records
from support.models.scored_records import (
    QUICK,
    ScoredRecord,
    make_records,
    make_rows,
    mean,
    records_from_rows,
)

COSTS = {
    "refund": {"billing": 0.0, "delivery": 5.0, "other": 8.0},
    "ship again": {"billing": 6.0, "delivery": 0.0, "other": 8.0},
    "ask": {"billing": 2.0, "delivery": 2.0, "other": 1.0},
}


def topic_rows(seed=1, n=60):
    return [row for row in make_rows(seed, n) if row.decision_id == "topic"]


def test_the_word_for_abstaining_is_the_reserved_one():
    assert ABSTAIN == RESERVED


@pytest.mark.parametrize("abstain_below", [None, 0.0, 0.55, 1.0])
@pytest.mark.parametrize("with_costs", [True, False])
def test_it_chooses_as_a_decide_call_does(abstain_below, with_costs):
    rows = topic_rows()
    names = rows[0].outcomes
    matrix = tuple(tuple(row[name] for name in names) for row in COSTS.values())
    policy = Policy(
        tuple(COSTS) if with_costs else (),
        matrix if with_costs else (),
        min_probability=abstain_below,
    )
    choices = [choose_action(policy, names, row.probabilities).action for row in rows]
    report = policy_report(
        records_from_rows(rows),
        "topic",
        action_costs=COSTS if with_costs else None,
        abstain_below=abstain_below,
        bootstrap=QUICK,
    )
    assert [held.action for held in report.actions] == [*(COSTS if with_costs else names), ABSTAIN]
    for held in report.actions:
        assert held.share.value == pytest.approx(choices.count(held.action) / len(rows))
    acted = [(row, choice) for row, choice in zip(rows, choices, strict=True) if choice != ABSTAIN]
    assert report.coverage.value == pytest.approx(len(acted) / len(rows))
    if with_costs and acted:
        paid = mean(
            sum(COSTS[choice][name] * t for name, t in zip(names, row.targets, strict=True))
            for row, choice in acted
        )
        promised = mean(
            sum(COSTS[choice][name] * p for name, p in zip(names, row.probabilities, strict=True))
            for row, choice in acted
        )
        assert report.cost.value == pytest.approx(paid)
        assert report.promised_cost.value == pytest.approx(promised)
        assert report.least_cost.value <= report.cost.value
        assert report.promised_cost.value <= min(
            mean(
                sum(
                    COSTS[action][name] * p
                    for name, p in zip(names, row.probabilities, strict=True)
                )
                for row, _ in acted
            )
            for action in COSTS
        )


def test_costs_that_tie_on_paper_and_not_in_a_matrix_product_go_to_the_first():
    third = ScoredRecord("c", "d", "single", ("a", "b", "c"), (1 / 3,) * 3, (1.0, 0.0, 0.0))
    first, second = {"a": 0.1, "b": 0.3, "c": 1.0}, {"a": 0.1, "b": 1.0, "c": 0.3}
    costs = {"first": first, "second": second}
    for ordered in (costs, dict(reversed(costs.items()))):
        assert acted_costs(records_from_rows([third]), np.array([0]), ordered).chosen.tolist() == [
            0
        ]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.data())
@settings(deadline=None, max_examples=80)
def test_exact_ties_go_to_the_action_of_a_decide_call(shares, data):
    names = tuple("abcde"[: len(shares)])
    p = tuple(share / sum(shares) for share in shares)
    row = st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0]), min_size=len(p), max_size=len(p))
    matrix = tuple(tuple(costs) for costs in data.draw(st.lists(row, min_size=2, max_size=5)))
    actions = tuple(f"do {index}" for index in range(len(matrix)))
    scored = ScoredRecord("c", "d", "single", names, p, (1.0,) + (0.0,) * (len(p) - 1))
    found = acted_costs(
        records_from_rows([scored]),
        np.array([0]),
        {
            action: dict(zip(names, costs, strict=True))
            for action, costs in zip(actions, matrix, strict=True)
        },
    )
    assert actions[found.chosen[0]] == choose_action(Policy(actions, matrix), names, p).action


def test_the_curve_of_a_policy_counts_the_cost_of_abstaining():
    records = records_from_rows(rows := topic_rows(2))
    curve = policy_cost_curve(
        records, "topic", action_costs=COSTS, abstain_cost=1.5, bootstrap=QUICK
    )
    paid = acted_costs(records, np.arange(len(rows)), COSTS).paid
    for point in curve.points:
        kept = [
            cost
            for row, cost in zip(rows, paid, strict=True)
            if max(row.probabilities) >= point.threshold
        ]
        assert point.coverage == pytest.approx(len(kept) / len(rows))
        total = sum(kept) + 1.5 * (len(rows) - len(kept))
        assert point.cost_in_all.value == pytest.approx(total / len(rows))
        assert (point.cost is None) == (not kept)
    assert curve.points[-1].cost_in_all.value == pytest.approx(1.5)
    lowest = min(point.cost_in_all.value for point in curve.points)
    best = next(p for p in curve.points if p.threshold == curve.best_threshold)
    assert best.cost_in_all.value == pytest.approx(lowest)


def test_records_with_rewards_have_earnings_and_take_no_costs():
    records = make_records(3, supervision="rewards")
    report = policy_report(records, "topic", abstain_below=0.5, bootstrap=QUICK)
    assert report.expected_reward.n == round(report.coverage.value * report.n)
    with pytest.raises(ValueError, match="targets"):
        policy_report(records, "topic", action_costs=COSTS)


@pytest.mark.parametrize(
    ("costs", "type_"),
    [
        ({}, "too_short"),
        ({f"action {number}": COSTS["ask"] for number in range(256)}, "out_of_range"),
        ({" ": COSTS["ask"]}, "blank"),
        ({"abstain": COSTS["ask"]}, "reserved"),
        ({"ask": {"billing": 1.0, "delivery": 1.0}}, "missing"),
        ({"ask": {**COSTS["ask"], "weather": 1.0}}, "unknown_outcome"),
        ({"ask": {**COSTS["ask"], "other": float("nan")}}, "out_of_range"),
        ({"ask": {**COSTS["ask"], "other": 1e300}}, "out_of_range"),
        ({"ask": {**COSTS["ask"], "other": True}}, "out_of_range"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_with_its_path(costs, type_):
    with pytest.raises(InvalidRequestError) as caught:
        policy_report(records_from_rows(topic_rows(4, 5)), "topic", action_costs=costs)
    (violation,) = caught.value.violations
    assert (violation.path[:2], violation.type) == (("body", "action_costs"), type_)


def test_a_threshold_outside_0_and_1_and_an_unknown_decision_are_refused():
    records = records_from_rows(topic_rows(5, 5))
    with pytest.raises(InvalidRequestError, match="abstain_below"):
        policy_report(records, "topic", abstain_below=1.5)
    with pytest.raises(LookupError, match="weather"):
        rows_of_decision(records, "weather")


def test_every_action_has_the_figures_that_it_has_alone():
    records = records_from_rows(topic_rows(6))
    rows = rows_of_decision(records, "topic")
    report = policy_report(
        records, "topic", action_costs=COSTS, abstain_below=0.45, bootstrap=QUICK
    )
    acted = acted_costs(records, rows, COSTS)
    did = measure_records(records).p_top[rows] >= 0.45
    for index, one in enumerate(report.actions[:-1]):
        one_cost = {name: row for name, row in COSTS.items() if name == one.action}
        alone = policy_report(records, "topic", action_costs=one_cost, bootstrap=QUICK)
        for name in ("value", "low", "high", "n"):
            wanted = getattr(alone.actions[0].cost, name)
            assert getattr(one.cost, name) == pytest.approx(wanted)
        assert one.share.value == pytest.approx(((acted.chosen == index) & did).mean())


def test_of_too_many_outcomes_the_most_answered_are_listed():
    def answered(index, name):
        names = (name, f"only in {index}")
        return ScoredRecord(f"c{index}", "which", "single", names, (0.6, 0.4), (1.0, 0.0))

    # 300 rows with an answer of their own, and two that are answered by several.
    rows = [answered(i, f"of {i}") for i in range(300)]
    rows += [answered(300 + i, "often") for i in range(3)]
    rows += [answered(303 + i, "twice") for i in range(2)]
    report = policy_report(records_from_rows(rows), "which", bootstrap=QUICK)
    assert len(report.actions) == 255 + 1
    shares = {one.action: one.share.value * len(rows) for one in report.actions}
    assert (shares["often"], shares["twice"]) == pytest.approx((3, 2))
    assert sum(shares.values()) == pytest.approx(3 + 2 + 253)
