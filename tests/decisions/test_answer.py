from __future__ import annotations

import msgspec
import pytest

from steelyard.decisions.answer import answer_decision
from steelyard.decisions.policy import Policy
from support.decisions.factories import make_decision


def test_the_first_of_the_largest_is_the_top() -> None:
    result = answer_decision(make_decision(), [0.2, 0.4, 0.4])
    assert (result.top, result.p_top, result.action) == ("b", 0.4, "b")
    assert list(result.probabilities) == ["a", "b", "c"]


def test_the_expected_level_goes_by_place_and_not_by_name() -> None:
    decision = make_decision(("1", "3", "5"), kind="ordinal")
    assert answer_decision(decision, [0.2, 0.3, 0.5]).expected_level == pytest.approx(1.3)


def test_fields_that_do_not_apply_are_absent_on_the_wire() -> None:
    sent = msgspec.json.decode(
        msgspec.json.encode(answer_decision(make_decision(), [0.5, 0.3, 0.2]))
    )
    assert sent == {
        "kind": "single",
        "probabilities": {"a": 0.5, "b": 0.3, "c": 0.2},
        "top": "a",
        "p_top": 0.5,
        "action": "a",
    }


def test_a_policy_fills_policy_and_action() -> None:
    decision = make_decision(("a", "b"), policy=Policy(min_probability=0.9))
    sent = msgspec.to_builtins(answer_decision(decision, [0.6, 0.4]))
    assert (sent["action"], sent["policy"], sent["top"]) == ("abstain", {"action": "abstain"}, "a")


def test_an_outcome_abstains_below_its_own_threshold() -> None:
    policy = Policy(min_probability=0.9, outcome_thresholds=(0.6, None))
    decision = make_decision(("a", "b"), policy=policy)
    actions = [
        answer_decision(decision, shares).action
        for shares in ([0.6, 0.4], [0.59, 0.41], [0.2, 0.8], [0.1, 0.9])
    ]
    assert actions == ["a", "abstain", "abstain", "b"]
