"""Rules about a request as a whole, reported on the first decision that they concern."""

from __future__ import annotations

import pytest

from steelyard.decisions.lint.service import lint_request
from support.decisions.linting import CONTEXT, binary, found_in, ordinal, rules_of, single

#: Rule, context, and the decisions of the request.
FIRES = [
    ("duplicate_questions", CONTEXT, [binary("Is it urgent?"), binary("is it  urgent")]),
    (
        "duplicate_questions",
        CONTEXT,
        [
            single(outcomes={"billing": "money", "other": None}),
            single(outcomes={"other": None, "billing": "Money."}, weights={"other": 2}),
        ],
    ),
    ("duplicate_questions", CONTEXT, [binary({"ask": "a", "b": 1}), binary({"b": 1, "ask": "a"})]),
    ("empty_context", "", [binary(), ordinal()]),
    ("empty_context", " \n", [binary()]),
    ("empty_context", {}, [binary()]),
    ("empty_context", [], [binary()]),
]

MISSES = [
    ("duplicate_questions", CONTEXT, [binary("Is it urgent?"), binary("Is it late?")]),
    ("duplicate_questions", CONTEXT, [binary("Is it urgent?"), ordinal("Is it urgent?")]),
    (
        "duplicate_questions",
        CONTEXT,
        [
            single(outcomes={"billing": "money", "other": None}),
            single(outcomes={"billing": "any charge", "other": None}),
        ],
    ),
    (
        "duplicate_questions",
        CONTEXT,
        [ordinal(rubric=["a typo", "an outage"]), ordinal(rubric=["a scratch", "a crack"])],
    ),
    ("empty_context", "?", [binary()]),
    ("empty_context", {"text": ""}, [binary()]),
    ("empty_context", [0], [binary()]),
]


def with_ids(decisions):
    return [{"id": f"d{place}", **decision} for place, decision in enumerate(decisions)]


@pytest.mark.parametrize(("rule", "context", "decisions"), FIRES)
def test_fires_alone_on_the_first_decision(rule, context, decisions):
    request = {"context": context, "decisions": with_ids(decisions)}
    warnings = lint_request(request).warnings
    assert [(warning.decision, warning.rule) for warning in warnings] == [("d0", rule)]


@pytest.mark.parametrize(("rule", "context", "decisions"), MISSES)
def test_a_near_miss_is_silent(rule, context, decisions):
    assert lint_request({"context": context, "decisions": with_ids(decisions)}).warnings == []


@pytest.mark.parametrize("cases", [FIRES, MISSES])
def test_every_rule_of_the_theme_has_cases(cases):
    assert {case[0] for case in cases} == rules_of("requests")


def test_equal_questions_are_one_finding_that_names_the_others():
    asked = [binary("Is it late?"), binary("Is it urgent?")] * 3
    warnings = lint_request({"context": CONTEXT, "decisions": with_ids(asked)}).warnings
    assert [warning.decision for warning in warnings] == ["d0", "d1"]
    assert '"d2", "d4"' in warnings[0].message
    assert found_in(binary("Is it late?")) == []
