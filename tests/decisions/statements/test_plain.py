"""Negated yes/no questions are turned round where grammar gives the scope of the negation."""

from __future__ import annotations

import pytest

from steelyard.decisions.statements.plain import plain_question


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("Is it false that the bill is paid?", "Is it true that the bill is paid?"),
        ("Is it not the case that Ann paid and Tom did?", "Is it true that Ann paid and Tom did?"),
        ("Is it wrong to say that we won?", "Is it right to say that we won?"),
        ("  is this untrue: the shop is open", "is this true: the shop is open"),
        ("Is it true that the bill is not paid?", "Is it true that the bill is paid?"),
        ("Is it correct that she can't come?", "Is it correct that she can come?"),
        ("Has the bill not been paid?", "Has the bill been paid?"),
        ("Does the customer not want a refund?", "Does the customer want a refund?"),
        ("Is this not a complaint?", "Is this a complaint?"),
        ("Did Anna not come?", "Did Anna come?"),
        ("Was the second parcel not delivered?", "Was the second parcel delivered?"),
        ("The bill isn\u2019t paid.", "The bill is paid."),
        ("Is there no lift in the house?", "Is there any lift in the house?"),
        ("Is the product no longer sold?", "Is the product still sold?"),
        ("Is it true that the shop is no longer open?", "Is it true that the shop is still open?"),
        ("It cannot be opened", "It can be opened"),
    ],
)
def test_a_negation_is_taken_out(asked, plain):
    assert plain_question(asked) == (plain, True)
    assert plain_question(plain) == (plain, False)


def test_two_negations_are_none():
    twice = "Is it false that the bill is not paid?"
    assert plain_question(twice) == ("Is it true that the bill is paid?", False)


@pytest.mark.parametrize(
    "asked",
    [
        "Is the bill paid?",
        "Is the answer wrong?",
        # Of what somebody says: silence is another thing than a denial.
        "Does the customer say that it is not paid?",
        "Does the customer claim not to have paid?",
        "The customer said it is not paid.",
        "Is the customer who did not pay angry?",
        # Of a noun.
        "Does the email contain pictures not fit for children?",
        "Does it name goods not sent?",
        "The refund for goods not sent is late.",
        # What is led to a yes.
        "Isn't the bill paid?",
        "Is not the bill paid?",
        "Is the bill paid, isn't it?",
        "Is the bill paid or not?",
        # Of quantities, of degrees, and of what is due, a denial is not the opposite.
        "Are all of the bills not paid?",
        "Is somebody not here?",
        "Does the room have no window?",
        "Is there no doubt about it, and why?",
        "Is it not only late but wrong?",
        "Has the bill not yet been paid?",
        "Is the customer not very happy?",
        "Should the card not be blocked?",
        "Must the form not be signed?",
        "Is the bill not paid and overdue?",
        "Is it not paid because he is ill?",
        "Is the bill not paid? Answer yes if so.",
        "If it is not late, who is to pay?",
        "not",
        "",
    ],
)
def test_any_other_question_stays(asked):
    assert plain_question(asked) == (asked, False)
