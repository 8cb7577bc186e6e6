"""Typed questions are turned into the right statement and its negation, or declined."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.decisions.statements import read_question

_ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("questions.jsonl").read_text("utf-8").splitlines()
]


def test_typed_questions_are_turned_rightly_or_declined():
    wrong, declined = [], []
    for row in _ROWS:
        reading = read_question(row["question"])
        expected = (row["statement"], row["negation"])
        if reading is None:
            if row["statement"] is not None:
                declined.append(row["question"])
        elif (reading.statement, reading.negation) != expected:
            wrong.append((row["question"], reading, expected))
    assert not wrong
    assert len(_ROWS) >= 400
    assert len(declined) <= 0.05 * len(_ROWS), declined


@pytest.mark.parametrize(
    "question",
    [
        "",
        "?",
        "is",
        "Is?",
        "Does the",
        "Is there?",
        "Why?",
        "What does the customer want?",
        "Is it late? Is it early?",
        "Is it a bug or a feature?",
        "Should we wait or reply?",
        "Was the motion granted or denied?",
        "{}",
        "yes",
        "a " * 400,
    ],
)
def test_a_question_that_no_rule_is_sure_of_is_declined(question):
    assert read_question(question) is None
