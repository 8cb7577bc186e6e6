from __future__ import annotations

from typing import Any

import pytest

from steelyard.decisions.tokens import count_input_tokens
from steelyard.decisions.validation import read_request
from steelyard.scoring.hashing import WordCounter
from support.decisions.factories import make_decision_dict, make_request_dict


def count(*decisions: dict[str, Any], **fields: Any) -> int:
    request = read_request(make_request_dict(*decisions, **fields))
    return count_input_tokens(WordCounter(), request.context, request.decisions)


def test_every_part_is_counted_once() -> None:
    decision = make_decision_dict(question="one two", outcomes={"a": "b c", "d": None})
    assert count(decision, context="x y z") == 3 + 2 + 4
    again = {**decision, "id": "again", "question": "three"}
    assert count(decision, again, context="x y z") == 3 + 2 + 4 + 1
    other = {**again, "outcomes": {"a": "b", "d": None}}
    assert count(decision, other, context="x y z") == 3 + 2 + 4 + 1 + 3


def test_sets_of_outcomes_are_the_same_only_where_each_name_has_the_same_description() -> None:
    one = make_decision_dict(question="q", outcomes={"a": "long text", "b": None})
    other = make_decision_dict(id="other", question="q", outcomes={"a": None, "b": "long text"})
    assert count(one, other, context="") == 2 * (1 + 4)
    named = make_decision_dict(question="q", outcomes=["late", "early"])
    binary = {
        "id": "b",
        "kind": "binary",
        "question": "q",
        "outcomes": {"yes": "late", "no": "early"},
    }
    assert count(named, binary, context="") == 2 * (1 + 2)


def test_binary_names_count_nothing_and_descriptions_do() -> None:
    decision: dict[str, Any] = {"id": "a", "kind": "binary", "question": "q"}
    assert count(decision, context="") == 1
    assert count({**decision, "outcomes": {"yes": "one two"}}, context="") == 3


@pytest.mark.parametrize(("value", "n_tokens"), [("", 0), ([], 2), ({"a": 1}, 7)])
def test_values_that_are_no_text_count_as_json(value: Any, n_tokens: int) -> None:
    decision: dict[str, Any] = {"id": "a", "kind": "binary", "question": "q"}
    assert count(decision, context=value) == n_tokens + 1
