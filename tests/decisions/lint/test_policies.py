"""Rules about policies: thresholds and actions that never come to anything."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.lint.policies import find_dominated
from support.decisions.linting import Case, binary, found_in, ordinal, rules_of, single
from support.decisions.strategies import few

FREE = {"yes": 0, "no": 8}
MATRIX = {"pay": FREE, "ask": {"yes": 1, "no": 1}}

FIRES: list[Case] = [
    ("unreachable_abstain", binary(policy={"abstain_below": 0.5})),
    ("unreachable_abstain", single(policy={"abstain_below": 0.33})),
    ("unreachable_abstain", single(abstain={"min_probability": 0.0, "cost": 1})),
    ("unreachable_abstain", ordinal(abstain={"min_probability": 0.3})),
    ("dominated_action", binary(policy={"action_costs": {**MATRIX, "sue": {"yes": 9, "no": 9}}})),
    ("dominated_action", binary(costs={**MATRIX, "ask again": {"yes": 1, "no": 1}})),
    ("dominated_action", binary(costs={"first": {"yes": 0, "no": 9}, **MATRIX})),
]

MISSES: list[Case] = [
    ("unreachable_abstain", binary(policy={"abstain_below": 0.51})),
    ("unreachable_abstain", single(policy={"abstain_below": 0.34})),
    ("unreachable_abstain", single(abstain={"cost": 0.1})),
    ("dominated_action", binary(policy={"action_costs": MATRIX})),
    ("dominated_action", binary(policy={"action_costs": {"pay": FREE}})),
    ("dominated_action", binary(costs={"yes": 1, "no": 4})),
]


@pytest.mark.parametrize(("rule", "decision"), FIRES)
def test_fires_alone(rule, decision):
    assert found_in(decision) == [rule]


@pytest.mark.parametrize(("rule", "decision"), MISSES)
def test_a_near_miss_is_silent(rule, decision):
    assert found_in(decision) == []


@pytest.mark.parametrize("cases", [FIRES, MISSES])
def test_every_rule_of_the_theme_has_cases(cases):
    assert {rule for rule, _ in cases} == rules_of("policies")


def dominates(better, worse, costs) -> bool:
    is_no_dearer = all(one <= other for one, other in zip(costs[better], costs[worse], strict=True))
    return is_no_dearer and (costs[better] != costs[worse] or better < worse)


@few
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(0, 3), min_size=width, max_size=width), min_size=1, max_size=7
        )
    )
)
def test_dominated_rows_are_those_that_comparing_all_pairs_finds(costs) -> None:
    expected = {
        worse
        for worse, better in itertools.permutations(range(len(costs)), 2)
        if dominates(better, worse, costs)
    }
    found = find_dominated(costs)
    if found is None:
        assert expected == set()
    else:
        worse, better = found
        assert worse == min(expected)
        assert dominates(better, worse, costs)
