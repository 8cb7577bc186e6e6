"""Typed questions are turned into the right statement and its negation, or declined."""

from __future__ import annotations

import json
from itertools import product
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

_SUBJECTS = (
    *(
        "the customer",
        "the second parcel",
        "her last invoice",
        "the supplier's offer",
        "what she wrote",
    ),
    *("the e-mail that came on Friday", "the witness who called yesterday", "the report she sent"),
    *(
        "the fee charged by the bank",
        "the clause on liability",
        "the tenant in flat 4",
        "Mr Ito's bag",
    ),
    *("the file attached to the ticket", "the second of the two tests", "the fact that he paid"),
    *("the review of the hotel", "the reason why he left", "calling the customer back"),
)
_STATES = (
    *(
        "late",
        "angry",
        "a problem",
        "too long",
        "clear enough to be used",
        "being checked",
        "not signed",
    ),
    *("signed by both parties", "ready to be sent", "known to the police", "hard to understand"),
    *(
        "likely to change",
        "wrong about the price",
        "asked to wait",
        "worth the money",
        "part of the file",
    ),
)
#: The base of a verb, its third person and its past, each with an object.
_DEEDS = (
    ("mention a price", "mentions a price", "mentioned a price"),
    ("make sense", "makes sense", "made sense"),
    ("explain why it was late", "explains why it was late", "explained why it was late"),
    ("have to be signed", "has to be signed", "had to be signed"),
    ("go on for too long", "goes on for too long", "went on for too long"),
    (
        "stop working after the update",
        "stops working after the update",
        "stopped working after the update",
    ),
    ("change the result", "changes the result", "changed the result"),
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


def _built_questions():
    """Yield questions of every subject and predicate, each with its statement and negation."""
    for subject, state, verb in product(_SUBJECTS, _STATES, ("is", "was")):
        plain = state.removeprefix("not ")
        both = f"{subject} {verb} {plain}", f"{subject} {verb} not {plain}"
        yield f"{verb} {subject} {state}", both if plain == state else both[::-1]
    for subject, (base, third, past) in product(_SUBJECTS, _DEEDS):
        yield f"does {subject} {base}", (f"{subject} {third}", f"{subject} does not {base}")
        yield f"did {subject} {base}", (f"{subject} {past}", f"{subject} did not {base}")
        for modal, denied in (("will", "will not"), ("can", "cannot"), ("might", "could not")):
            yield (
                f"{modal} {subject} {base}",
                (f"{subject} {modal} {base}", f"{subject} {denied} {base}"),
            )


def test_built_questions_are_turned_rightly():
    wrong, declined, size = [], 0, 0
    for question, (statement, negation) in _built_questions():
        reading = read_question(f"{question[:1].upper()}{question[1:]}?")
        expected = tuple(f"{text[:1].upper()}{text[1:]}." for text in (statement, negation))
        size += 1
        if reading is None:
            declined += 1
        elif (reading.statement, reading.negation) != expected:
            wrong.append((question, reading))
    assert not wrong
    assert size > 1000
    assert declined <= 0.03 * size


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
