from __future__ import annotations

from typing import Any

import pytest

from steelyard.decisions.policy import Policy, choose_action
from steelyard.errors import InvalidRequestError
from support.decisions.factories import make_decision_dict, make_request_dict, violations_of

NAMES = ("billing", "support", "other")
PROBABILITIES = (0.9, 0.07, 0.03)
COSTS = ((0.0, 9.0, 9.0), (2.0, 1.0, 1.0))


def test_a_worked_example() -> None:
    policy = Policy(("auto_refund", "ask"), COSTS, min_probability=0.5, max_cost=3.0)
    choice = choose_action(policy, NAMES, PROBABILITIES)
    assert choice.action == "auto_refund"
    assert choice.expected_costs == pytest.approx({"auto_refund": 0.9, "ask": 1.9})


def test_the_first_action_wins_a_tie() -> None:
    policy = Policy(("b", "a"), ((1.0, 1.0, 1.0),) * 2)
    assert choose_action(policy, NAMES, PROBABILITIES).action == "b"


def test_the_first_outcome_wins_a_tie_of_weighted_probabilities() -> None:
    policy = Policy(weights=(1.0, 3.0, 1.0))
    assert choose_action(policy, NAMES, (0.75, 0.25, 0.0)).action == "billing"
    assert choose_action(policy, NAMES, (0.7, 0.25, 0.05)).action == "support"


@pytest.mark.parametrize(("threshold", "action"), [(0.9, "billing"), (0.9000001, "abstain")])
def test_abstaining_is_strictly_below_the_threshold(threshold: float, action: str) -> None:
    choice = choose_action(Policy(min_probability=threshold), NAMES, PROBABILITIES)
    assert (choice.action, choice.expected_costs) == (action, None)


@pytest.mark.parametrize(
    ("unstated", "action"), [(None, "billing"), (0.4, "billing"), (0.41, "abstain")]
)
def test_abstaining_is_strictly_above_the_unstated_bound(
    unstated: float | None, action: str
) -> None:
    policy = Policy(max_unstated=0.4)
    assert choose_action(policy, NAMES, PROBABILITIES, unstated).action == action


@pytest.mark.parametrize(("max_cost", "action"), [(0.91, "auto_refund"), (0.89, "abstain")])
def test_abstaining_is_strictly_above_the_cost(max_cost: float, action: str) -> None:
    policy = Policy(("auto_refund", "ask"), COSTS, max_cost=max_cost)
    choice = choose_action(policy, NAMES, PROBABILITIES)
    assert choice.action == action
    assert choice.expected_costs == pytest.approx({"auto_refund": 0.9, "ask": 1.9})


@pytest.mark.parametrize(("max_cost", "action"), [(0.11, "billing"), (0.09, "abstain")])
def test_without_costs_the_expected_cost_is_that_of_being_wrong(
    max_cost: float, action: str
) -> None:
    assert choose_action(Policy(max_cost=max_cost), NAMES, PROBABILITIES).action == action


def test_weights_scale_the_expectation_and_are_normalised() -> None:
    policy = Policy(("go", "wait"), ((0.0, 1.0), (1.0, 0.0)), weights=(1.0, 3.0))
    choice = choose_action(policy, ("a", "b"), (0.6, 0.4))
    assert choice.expected_costs == pytest.approx({"go": 1.2 / 1.8, "wait": 0.6 / 1.8})
    assert choice.action == "wait"


@pytest.mark.parametrize("weights", [(1e308, 1e308), (5e-324, 5e-324), (1e308, 5e-324)])
def test_no_weight_is_too_large_or_small(weights: tuple[float, float]) -> None:
    policy = Policy(("go",), ((1.0, 2.0),), weights=weights)
    costs = choose_action(policy, ("a", "b"), (0.0, 1.0)).expected_costs
    assert costs == {"go": 2.0}


def test_an_expected_cost_too_large_for_a_number_is_refused() -> None:
    path = ("body", "decisions", 0, "costs")
    policy = Policy(("ok", "huge"), ((1.0, 1.0), (1.7e308, 1.7e308)), costs_path=path)
    # Rounding may take a sum of probabilities over 1; this one makes plain what then happens.
    with pytest.raises(InvalidRequestError) as caught:
        choose_action(policy, ("a", "b"), (0.6, 0.6))
    (violation,) = caught.value.violations
    assert (violation.path, violation.type) == ((*path, "huge"), "overflow")


MATRIX = {"go": {"billing": 1, "support": 2, "other": 3}}


@pytest.mark.parametrize(
    ("fields", "path", "type_"),
    [
        ({"policy": {}}, ("policy",), "missing"),
        ({"policy": {"action_costs": None, "abstain_below": None}}, ("policy",), "missing"),
        ({"policy": {"action_costs": {}}}, ("policy", "action_costs"), "too_short"),
        ({"policy": {"action_costs": 5}}, ("policy", "action_costs"), "wrong_type"),
        ({"policy": {"action_costs": {"go": 5}}}, ("policy", "action_costs", "go"), "wrong_type"),
        (
            {"policy": {"action_costs": {"go": {}}}},
            ("policy", "action_costs", "go", "billing"),
            "missing",
        ),
        (
            {"policy": {"action_costs": {"go": {**MATRIX["go"], "x": 1}}}},
            ("policy", "action_costs", "go", "x"),
            "unknown_outcome",
        ),
        (
            {"policy": {"action_costs": {"go": {**MATRIX["go"], "other": True}}}},
            ("policy", "action_costs", "go", "other"),
            "wrong_type",
        ),
        (
            {"policy": {"action_costs": {"go": {**MATRIX["go"], "other": float("nan")}}}},
            ("policy", "action_costs", "go", "other"),
            "not_finite",
        ),
        (
            {"policy": {"action_costs": {" ": MATRIX["go"]}}},
            ("policy", "action_costs", " "),
            "blank",
        ),
        (
            {"policy": {"action_costs": {"abstain": MATRIX["go"]}}},
            ("policy", "action_costs", "abstain"),
            "reserved",
        ),
        (
            {"policy": {"action_costs": {str(n): MATRIX["go"] for n in range(256)}}},
            ("policy", "action_costs"),
            "too_long",
        ),
        ({"policy": {"abstain_below": 1.01}}, ("policy", "abstain_below"), "out_of_range"),
        ({"policy": {"outcome_thresholds": {}}}, ("policy",), "missing"),
        (
            {"policy": {"outcome_thresholds": {"nothing": 0.5}}},
            ("policy", "outcome_thresholds", "nothing"),
            "unknown_outcome",
        ),
        ({"policy": {"abstain_above": 1}}, ("policy", "abstain_above"), "unknown_field"),
        ({"costs": {}}, ("costs",), "too_short"),
        ({"costs": {"billing": 1, "go": MATRIX["go"]}}, ("costs",), "conflict"),
        ({"costs": {"billing": 1, "support": 2}}, ("costs", "other"), "missing"),
        (
            {"costs": {"billing": 1, "support": 2, "other": 3, "x": 4}},
            ("costs", "x"),
            "unknown_outcome",
        ),
        (
            {"costs": {"billing": float("nan"), "support": 2, "other": 3}},
            ("costs", "billing"),
            "not_finite",
        ),
        ({"costs": {"go": {"billing": 1}}}, ("costs", "go", "support"), "missing"),
        ({"weights": {"billing": 0}}, ("weights", "billing"), "out_of_range"),
        ({"weights": {"billing": -1}}, ("weights", "billing"), "out_of_range"),
        ({"weights": {"x": 1}}, ("weights", "x"), "unknown_outcome"),
        ({"weights": [1]}, ("weights",), "wrong_type"),
        ({"abstain": {}}, ("abstain",), "missing"),
        ({"abstain": {"min_probability": -0.1}}, ("abstain", "min_probability"), "out_of_range"),
        ({"abstain": {"cost": "1"}}, ("abstain", "cost"), "wrong_type"),
        ({"abstain": {"cost": float("inf")}}, ("abstain", "cost"), "not_finite"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(
    fields: dict[str, Any], path: tuple[Any, ...], type_: str
) -> None:
    found = violations_of(make_request_dict(make_decision_dict(**fields)))
    assert found[("body", "decisions", 0, *path)] == type_


@pytest.mark.parametrize("name", ["weights", "costs", "abstain"])
def test_both_spellings_at_once_are_refused(name: str) -> None:
    seed: dict[str, Any] = {"weights": {}, "costs": MATRIX, "abstain": {"cost": 1}}
    fields = {"policy": {"abstain_below": 0.5}, name: seed[name]}
    found = violations_of(make_request_dict(make_decision_dict(**fields)))
    assert found == {("body", "decisions", 0, name): "conflict"}


def test_every_bad_row_of_costs_is_named() -> None:
    matrix = {"go": {"billing": 1}, "abstain": MATRIX["go"], "ask": {**MATRIX["go"], "x": 0}}
    found = violations_of(make_request_dict(make_decision_dict(costs=matrix)))
    assert {path[4:] for path in found} == {
        ("go", "support"),
        ("go", "other"),
        ("abstain",),
        ("ask", "x"),
    }


def test_binary_costs_are_over_yes_and_no() -> None:
    decision = {"id": "a", "kind": "binary", "question": "?", "costs": {"yes": 1, "no": 2}}
    assert violations_of(make_request_dict(decision)) == {}
