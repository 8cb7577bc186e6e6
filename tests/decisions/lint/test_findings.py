"""Properties of findings on any valid request, and of the list of rules itself."""

from __future__ import annotations

import copy
import json
from typing import Any, get_args

from hypothesis import given

from steelyard.decisions.lint.registry import RULES
from steelyard.decisions.lint.service import lint_dict, lint_request
from steelyard.decisions.lint.wire import Severity
from support.decisions.linting import binary, single
from support.decisions.strategies import few, requests

ORDER = [rule.name for rule in RULES]


def test_the_rules_and_their_order():
    assert [(rule.name, rule.severity) for rule in RULES] == [
        ("negation", "warning"),
        ("no_way_out", "warning"),
        ("compound_question", "warning"),
        ("vague_outcome", "info"),
        ("missing_descriptions", "info"),
        ("overlapping_outcomes", "warning"),
        ("duplicate_descriptions", "warning"),
        ("too_many_outcomes", "info"),
        ("unordered_levels", "warning"),
        ("unanchored_rubric", "warning"),
        ("too_many_levels", "info"),
        ("binary_as_single", "info"),
        ("scale_as_single", "info"),
        ("no_statement", "info"),
        ("arithmetic_question", "warning"),
        ("leading_question", "info"),
        ("references_ids", "warning"),
        ("context_in_question", "info"),
        ("missing_field_reference", "warning"),
        ("long_outcome_names", "warning"),
        ("duplicate_questions", "info"),
        ("unreachable_abstain", "info"),
        ("dominated_action", "info"),
        ("empty_context", "info"),
        ("unread_language", "warning"),
        ("quoted_mail", "info"),
        ("markup", "info"),
        ("long_context", "info"),
    ]


def test_every_rule_has_a_finding_and_a_reason():
    for rule in RULES:
        first, _, reason = (rule.check.__doc__ or "").partition("\n\n")
        assert first.startswith("Find "), rule.name
        assert len(reason.split()) > 8, rule.name
        assert rule.summary.endswith("."), rule.name
        assert "|" not in rule.summary


@few
@given(requests())
def test_any_valid_request_is_linted_in_order(request_: dict[str, Any]) -> None:
    before = copy.deepcopy(request_)
    warnings = lint_request(request_).warnings
    assert request_ == before
    assert lint_request(json.dumps(request_).encode()).warnings == warnings
    places = {decision["id"]: place for place, decision in enumerate(request_["decisions"])}
    keys = [(places[warning.decision], ORDER.index(warning.rule)) for warning in warnings]
    assert keys == sorted(set(keys))
    for warning in warnings:
        assert warning.severity in get_args(Severity)
        assert warning.message.endswith(".")
        assert len(warning.message) < 500


@few
@given(requests())
def test_findings_do_not_depend_on_a_decisions_policy_or_id(request_: dict[str, Any]) -> None:
    about_actions = {"unreachable_abstain", "dominated_action"}
    bare = [
        {key: value for key, value in decision.items() if key not in ACTION_FIELDS}
        for decision in request_["decisions"]
    ]
    whole = lint_request(request_).warnings
    kept = [warning for warning in whole if warning.rule not in about_actions]
    assert lint_request({**request_, "decisions": bare}).warnings == kept


ACTION_FIELDS = {"policy", "costs", "weights", "abstain"}


def test_order_is_the_decisions_and_then_the_rules():
    request = {
        "context": "",
        "decisions": [
            {"id": "b", **single("Who is not it?", ["x1", "y1"])},
            {"id": "a", **binary("Is it not so? Is it?")},
        ],
    }
    found = [(w["decision"], w["rule"]) for w in lint_dict(request)["warnings"]]
    assert found == [
        ("b", "negation"),
        ("b", "no_way_out"),
        ("b", "empty_context"),
        ("a", "negation"),
        ("a", "compound_question"),
    ]


def test_a_callers_text_is_quoted_short_and_printable():
    request = {
        "context": "x",
        "decisions": [{"id": "d", **single("Which?", ["\x1b[2J" + "z" * 600, "b" * 90, "other"])}],
    }
    [warning] = lint_request(request).warnings
    assert warning.rule == "long_outcome_names"
    assert "\x1b" not in warning.message
    assert len(warning.message) < 300


def test_a_large_request_is_linted_in_bounded_time():
    # Every pair of its outcomes shares words; comparing each with each would take minutes.
    names = [
        [f"a b c d e f g {place} {decision}" for place in range(255)] for decision in range(64)
    ]
    decisions = [{"id": f"d{k}", **single("Which?", listed)} for k, listed in enumerate(names)]
    assert lint_request({"context": "x", "decisions": decisions}).warnings
