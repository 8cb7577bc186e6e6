"""Typed questions are turned into the right statement and its negation, or declined."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.statements import read_question
from support.decisions.strategies import few

_WORDS = st.sampled_from(
    [
        "is",
        "does",
        "did",
        "has",
        "there",
        "the",
        "a",
        "customer",
        "any",
        "ever",
        "not",
        "no",
        "want",
        "to",
        "pay",
        "paid",
        "who",
        "that",
        "and",
        "or",
        ",",
        "'",
        '"',
        "?",
        "7",
        "Dr.",
        "isn't",
        "never",
        "still",
        "all",
        "one",
        "of",
        "it's",
        "I",
        "if",
        "must",
        "none",
    ]
)


@pytest.mark.parametrize(
    ("file", "size"), [("questions.jsonl", 400), ("later_questions.jsonl", 80)]
)
def test_typed_questions_are_turned_rightly_or_declined(file, size):
    text = Path(__file__).with_name(file).read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    wrong, declined = [], []
    for row in rows:
        reading = read_question(row["question"])
        expected = (row["statement"], row["negation"])
        if reading is None:
            if row["statement"] is not None:
                declined.append(row["question"])
        elif (reading.statement, reading.negation) != expected:
            wrong.append((row["question"], reading, expected))
    assert not wrong
    assert len(rows) >= size
    assert len(declined) <= 0.05 * len(rows), declined


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
        "Does the mail say: where is my parcel?",
        'Is this summary consistent with the document? "He came. He saw."',
        "Is it late? Say yes only where it is early.",
        "Is it a bug or a feature?",
        "Is it a bug (or a feature)?",
        "Should we wait or reply?",
        "Was the motion granted or denied?",
        "{}",
        "yes",
        "a " * 400,
    ],
)
def test_a_question_that_no_rule_is_sure_of_is_declined(question):
    assert read_question(question) is None


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Is this post hateful? Quotes do not count, nor does irony.", "This post is hateful."),
        ("You are a moderator. Is this post hateful?", "This post is hateful."),
        ("Is the reply toxic (rude or unkind)?", "The reply is toxic (rude or unkind)."),
    ],
)
def test_what_says_what_counts_is_no_part_of_the_statement_but_in_brackets(question, statement):
    reading = read_question(question)
    assert reading is not None
    assert reading.statement == statement
    assert reading.negation == statement.replace(" is ", " is not ")


@pytest.mark.parametrize(
    ("question", "statement", "negation"),
    [
        (
            'Is this statement supported by the text? "Ito plays for Kyoto."',
            "Ito plays for Kyoto.",
            "Ito does not play for Kyoto.",
        ),
        (
            "According to the report, is it true that: no pets are cats",
            "No pets are cats.",
            "Some pets are cats.",
        ),
        (
            "Does the text contradict this claim: the dog barks",
            "It is not the case that the dog barks.",
            "The dog barks.",
        ),
        (
            "Does it follow from the text that the bill is paid?",
            "The bill is paid.",
            "The bill is not paid.",
        ),
    ],
)
def test_a_claim_in_a_question_is_its_statement(question, statement, negation):
    reading = read_question(question)
    assert reading is not None
    assert (reading.statement, reading.negation) == (statement, negation)


@few
@given(st.lists(_WORDS, max_size=12).map(" ".join) | st.text(max_size=60))
def test_any_text_is_read_or_declined(question):
    reading = read_question(question)
    assert reading is None or (
        reading.statement.endswith(".") and reading.statement != reading.negation
    )
