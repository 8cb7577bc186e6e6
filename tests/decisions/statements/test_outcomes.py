"""Outcomes and levels are stated as answers to their question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.decisions.statements import statement_of_outcome


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Which team should own this ticket?", "The team that should own this ticket is {}."),
        ("Which team should the ticket go to?", "The team that the ticket should go to is {}."),
        ("what is the topic", "The topic is {}."),
        ("What kind of request is this?", "The kind of request is {}."),
        ("What does the customer want?", "What the customer wants is {}."),
        ("What should happen next?", "What should happen next is {}."),
        ("Who should answer this?", "The one who should answer this is {}."),
        ("Which product is the complaint about?", "The product that the complaint is about is {}."),
        ("What emotion did the writer feel?", "The emotion that the writer felt is {}."),
        ("Which category fits best?", "The category that fits best is {}."),
        ("Which of these fits best?", "The one of these that fits best is {}."),
        ("How urgent is it?", 'The answer to "How urgent is it?" is {}.'),
        ("Topic", "The topic is {}."),
        ("Pick one", 'The answer to "Pick one" is {}.'),
        ("Classify the message", 'The answer to "Classify the message" is {}.'),
    ],
)
def test_a_question_and_an_outcome_make_a_statement(question, statement):
    named = statement_of_outcome(question, "order_status")
    assert named == statement.format("order status")
    described = statement_of_outcome(question, "order_status", "where is it")
    assert described == statement.format("order status (where is it)")


def test_a_description_that_is_a_sentence_is_the_statement():
    text = "The customer asks where the order is."
    assert statement_of_outcome("Which intent is it?", "status", text) == text
    assert statement_of_outcome("How bad is it?", "3", "Nobody can work.") == "Nobody can work."


def test_typed_questions_and_outcomes_make_the_right_statements():
    text = Path(__file__).with_name("outcomes.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    wrong = [
        (row, stated)
        for row in rows
        if (stated := statement_of_outcome(row["question"], row["outcome"], row["description"]))
        != row["statement"]
    ]
    assert not wrong
