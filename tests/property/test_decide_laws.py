from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steelyard.calibration.temperature import TemperatureTable
from support.decisions.factories import answer, make_decision_dict, make_request_dict, make_service
from support.decisions.strategies import costs, few, names, requests, temperatures, unique_names

weights = st.floats(1e-6, 1e6)


def results(request: dict[str, Any], **options: Any) -> dict[str, Any]:
    decoded = msgspec.to_builtins(answer(request, **options))
    decisions: dict[str, Any] = decoded["decisions"]
    return decisions


@few
@given(requests())
def test_every_decision_is_answered_with_a_distribution_over_its_outcomes(
    request_: dict[str, Any],
) -> None:
    answers = results(request_)
    assert list(answers) == [decision["id"] for decision in request_["decisions"]]
    for decision in request_["decisions"]:
        result = answers[decision["id"]]
        probabilities = result["probabilities"]
        assert all(math.isfinite(p) and 0 <= p <= 1 for p in probabilities.values())
        assert sum(probabilities.values()) == pytest.approx(1, abs=1e-6)
        if decision.get("kind") == "binary":
            assert list(probabilities) == ["yes", "no"]
        elif decision.get("outcomes") is not None:
            assert list(probabilities) == list(decision["outcomes"])
        first_of_largest = next(
            name for name, p in probabilities.items() if p == max(probabilities.values())
        )
        assert (result["top"], result["p_top"]) == (
            first_of_largest,
            probabilities[first_of_largest],
        )
        assert ("expected_level" in result) == (result["kind"] == "ordinal")
        if "policy" not in result:
            assert result["action"] == result["top"]
        else:
            assert result["action"] == result["policy"]["action"]


@few
@given(requests())
def test_bytes_and_values_have_the_same_answer(request_: dict[str, Any]) -> None:
    assert results(json.loads(json.dumps(request_))) == results(request_)
    encoded = msgspec.to_builtins(answer(json.dumps(request_).encode()))
    assert encoded["decisions"] == results(request_)


@few
@given(requests(max_decisions=4), st.randoms(use_true_random=False))
def test_other_decisions_change_nothing(request_: dict[str, Any], random: Any) -> None:
    together = results(request_)
    shuffled = list(request_["decisions"])
    random.shuffle(shuffled)
    assert results({**request_, "decisions": shuffled}) == together
    for decision in request_["decisions"]:
        alone = results({**request_, "decisions": [decision]})
        assert alone == {decision["id"]: together[decision["id"]]}


@few
@given(unique_names(2, 8), st.randoms(use_true_random=False))
def test_permuting_outcomes_permutes_probabilities(listed: list[str], random: Any) -> None:
    shuffled = list(listed)
    random.shuffle(shuffled)
    one = results(make_request_dict(make_decision_dict(outcomes=listed)))["route"]
    other = results(make_request_dict(make_decision_dict(outcomes=shuffled)))["route"]
    assert list(other["probabilities"]) == shuffled
    assert other["probabilities"] == pytest.approx(one["probabilities"], abs=1e-12)
    assert other["top"] == one["top"]


@few
@given(requests(), temperatures)
def test_temperature_keeps_the_top_and_orders_sharpness(
    request_: dict[str, Any], temperature: float
) -> None:
    plain = results({**request_, "temperature": None})
    tempered = results({**request_, "temperature": temperature})
    for id_, result in plain.items():
        again = tempered[id_]
        # Equal within rounding: two outcomes may become equal, and none may overtake.
        assert again["probabilities"][result["top"]] == pytest.approx(again["p_top"], rel=1e-12)
        difference = again["p_top"] - result["p_top"]
        assert difference >= -1e-12 if temperature <= 1 else difference <= 1e-12


@few
@given(requests())
def test_a_temperature_of_one_is_none(request_: dict[str, Any]) -> None:
    at_one = answer({**request_, "temperature": 1})
    without = answer({**request_, "temperature": None})
    assert at_one.decisions == without.decisions
    assert at_one.temperature is without.temperature is msgspec.UNSET


@few
@given(requests(), st.floats(0.2, 2), st.floats(0.2, 2))
def test_the_callers_temperature_multiplies_the_models(
    request_: dict[str, Any], models: float, callers: float
) -> None:
    assume(0.2 <= models * callers <= 5)
    buckets = {"2": models, "3-5": models, "6-12": models}
    table = TemperatureTable(dict.fromkeys(("single", "binary", "ordinal"), buckets))
    service = make_service(temperatures=table)
    both = results({**request_, "temperature": callers}, service=service)
    product = results({**request_, "temperature": models * callers})
    for id_, result in both.items():
        assert result["probabilities"] == pytest.approx(product[id_]["probabilities"], abs=1e-9)


@st.composite
def cost_matrices(draw: st.DrawFn) -> tuple[list[str], dict[str, dict[str, float]]]:
    listed, actions = draw(unique_names()), draw(unique_names(1, 4))
    return listed, {action: {name: draw(costs) for name in listed} for action in actions}


@few
@given(cost_matrices(), st.none() | st.floats(0, 1))
def test_both_spellings_of_a_policy_agree(
    drawn: tuple[list[str], dict[str, dict[str, float]]], threshold: float | None
) -> None:
    listed, matrix = drawn
    new = {"policy": {"action_costs": matrix, "abstain_below": threshold}}
    seed: dict[str, Any] = {"costs": matrix}
    if threshold is not None:
        seed["abstain"] = {"min_probability": threshold}
    one, other = (
        results(make_request_dict(make_decision_dict(outcomes=listed, **fields)))
        for fields in (new, seed)
    )
    assert one == other
    expected = one["route"]["policy"]["expected_costs"]
    probabilities = one["route"]["probabilities"]
    for action, row in matrix.items():
        assert expected[action] == pytest.approx(
            sum(row[name] * p for name, p in probabilities.items()), rel=1e-9, abs=1e-6
        )
    if threshold is not None and one["route"]["p_top"] < threshold:
        assert one["route"]["action"] == "abstain"
    else:
        cheapest = min(expected.values())
        assert one["route"]["action"] == next(a for a in expected if expected[a] == cheapest)


@few
@given(unique_names(), st.data())
def test_flat_costs_agree_with_the_matrix_they_stand_for(listed: list[str], data: Any) -> None:
    flat = {name: data.draw(costs) for name in listed}
    matrix = {a: {b: 0.0 if a == b else flat[a] for b in listed} for a in listed}
    weighing = {name: data.draw(weights) for name in listed}
    one, other = (
        results(
            make_request_dict(make_decision_dict(outcomes=listed, costs=form, weights=weighing))
        )
        for form in (flat, matrix)
    )
    assert one == other


@few
@given(unique_names(), st.data())
def test_weights_choose_as_costs_of_one_for_every_mistake_would(
    listed: list[str], data: Any
) -> None:
    weighing = {name: data.draw(weights) for name in listed}
    alone, dear = (
        results(make_request_dict(make_decision_dict(outcomes=listed, weights=weighing, **fields)))
        for fields in ({}, {"costs": dict.fromkeys(listed, 1.0)})
    )
    probabilities = alone["route"]["probabilities"]
    weighted = {name: p * weighing[name] for name, p in probabilities.items()}
    assert weighted[alone["route"]["action"]] == pytest.approx(max(weighted.values()), rel=1e-9)
    assert dear["route"]["probabilities"] == probabilities
    chosen = dear["route"]["action"]
    assert weighted[chosen] == pytest.approx(max(weighted.values()), rel=1e-6, abs=1e-9)


@few
@given(names, st.integers(2, 12))
def test_the_same_question_has_the_same_answer_under_every_id(name: str, copies: int) -> None:
    listed = [make_decision_dict(id=f"{name}{index}") for index in range(copies)]
    answers = results(make_request_dict(*listed))
    assert list(answers) == [decision["id"] for decision in listed]
    assert len({tuple(result["probabilities"].items()) for result in answers.values()}) == 1
