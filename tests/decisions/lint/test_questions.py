"""Rules about how a question is put."""

from __future__ import annotations

import pytest

from support.decisions.linting import CONTEXT, Case, binary, found_in, ordinal, rules_of, single

LONG_QUOTATION = '"My card was charged twice for order 118, and I want one payment back today."'

FIRES: list[Case] = [
    ("no_statement", binary("Is the reply praise or a complaint?")),
    ("no_statement", binary("Should the agent wait or act?")),
    ("no_statement", binary("Was the motion granted or denied?")),
    ("no_statement", binary("Does the tweet support or oppose the measure?")),
    ("no_statement", binary("Is the user trying to buy or sell a car?")),
    ("negation", binary("Is the parcel not lost?")),
    ("negation", binary("Didn't the customer pay?")),
    ("negation", binary("Isn’t this ticket urgent?")),  # noqa: RUF001
    ("negation", binary("Has the customer never paid?")),
    ("negation", binary("Did the order ship without a tracking number?")),
    ("negation", binary("Are all items in stock except the last one?")),
    ("negation", binary("Is the message neither rude nor threatening?")),
    ("negation", binary("Does the agent fail to greet the customer?")),
    ("negation", binary("Is the customer no longer interested?")),
    ("negation", binary("Does the message contain no personal data?")),
    ("negation", binary("Did nobody reply to the customer?")),
    ("negation", binary("Is it not unlikely that the customer pays?")),
    ("negation", binary("Is the refund request not urgent?")),
    ("negation", binary("Decide whether the customer does not want a refund.")),
    ("negation", binary("The customer is not angry.")),
    ("negation", single("Which team should not own this?")),
    ("negation", single("Which feeling is not shown by the customer?")),
    ("negation", ordinal("How soon is an answer not needed?")),
    ("negation", single(question={"task": "Pick a team.", "question": "Who must not own it?"})),
    ("compound_question", binary("Is it urgent? Is it about billing?")),
    ("compound_question", binary("Is the ticket urgent and does it need a manager?")),
    ("compound_question", binary("Does the customer ask for a refund and threaten to leave?")),
    ("compound_question", binary("Should we refund the order and close the ticket?")),
    ("compound_question", binary("Is the customer angry and asking for a refund?")),
    ("compound_question", binary("Is the customer unhappy and wants a refund?")),
    ("compound_question", binary("Is the customer angry or does she want a refund?")),
    ("compound_question", binary("Does the message contain both a name and a phone number?")),
    ("compound_question", binary("Is the answer correct and complete?")),
    ("compound_question", binary("Is the message urgent and about billing?")),
    ("compound_question", binary("Is it urgent, and why?")),
    ("compound_question", single("Which team owns it and how urgent is it?")),
    ("compound_question", ordinal("How urgent and important is it?")),
    ("arithmetic_question", binary("Was the order placed more than 30 days ago?")),
    ("arithmetic_question", binary("Did the customer buy within the last 30 days?")),
    ("arithmetic_question", binary("Was it returned within 30 days of delivery?")),
    ("arithmetic_question", binary("Is the total over $500?")),
    ("arithmetic_question", binary("Are there at least 3 attachments?")),
    ("arithmetic_question", binary("Is the invoice date before the due date?")),
    ("arithmetic_question", binary("Was it bought before 1 March 2024?")),
    ("arithmetic_question", binary("Was it signed after 2024-03-01?")),
    ("arithmetic_question", binary("Is the amount greater than the balance?")),
    ("arithmetic_question", binary("Do the line items add up to the invoice total?")),
    ("arithmetic_question", binary("Does the sum of the items match the total?")),
    ("arithmetic_question", binary("Is 17 * 3 larger than the number given?")),
    ("arithmetic_question", single("How many items are in the order?", ["one", "two", "unclear"])),
    (
        "arithmetic_question",
        {**binary("How many items are in the order?"), "statement": "It has many items."},
    ),
    ("arithmetic_question", single("What is 15% of the total?")),
    ("arithmetic_question", single("Count the items of the order.")),
    ("arithmetic_question", single("Which date is earlier?", ["ordered", "paid", "same"])),
    ("arithmetic_question", ordinal("How many items came?", ["0 of them", "1 to 3", "4 or more"])),
    ("leading_question", binary("This is spam, isn't it?")),
    ("leading_question", binary("The customer is angry, right?")),
    ("leading_question", binary("Is this obviously spam?")),
    ("leading_question", binary("Surely the customer is angry?")),
    ("leading_question", binary("Of course she is angry. Is she?")),
    ("leading_question", binary("Don't you agree that this is spam?")),
    ("leading_question", binary(outcomes={"yes": "obviously wants it", "no": "keeps it"})),
    (
        "leading_question",
        single(outcomes={"billing": "charges", "shipping": "the right answer", "other": None}),
    ),
    ("context_in_question", binary(f"Does the customer ask for money back? {'Yes it is. ' * 150}")),
    ("context_in_question", binary(f"Does the customer ask for money back? {'All of it. ' * 40}")),
]

MISSES: list[Case] = [
    ("no_statement", binary("Does the customer want tea or coffee?")),
    ("no_statement", binary("Urgent?")),
    ("no_statement", binary("Decide whether the parcel is lost.")),
    ("no_statement", {**binary("Praise or complaint?"), "statement": "It is praise."}),
    ("negation", binary("Does the customer say that the parcel never arrived?")),
    ("negation", binary("Does the customer complain that the app does not work?")),
    ("negation", binary("Is the customer asking to cancel without a fee?")),
    ("negation", binary("Did the payment fail?")),
    ("negation", binary("Is the courier to blame and not the shop?")),
    ("negation", binary("Is it a not-for-profit organisation?")),
    ("negation", binary("Is the ticket urgent or not?")),
    ("negation", binary("If it is not paid, is a reminder due?")),
    ("negation", binary("Does the customer write 'not working' or the like?")),
    ("negation", binary("Does she ask for money back? Do not count store credit.")),
    ("negation", single("Why was the parcel not delivered?")),
    ("negation", single(outcomes={"late": "came late", "lost": "never came", "other": None})),
    ("compound_question", binary("Does the customer ask for a refund or a replacement?")),
    ("compound_question", binary("Is the message rude or threatening?")),
    ("compound_question", binary("Is the reply polite and professional?")),
    ("compound_question", binary("Is the reply clear and concise?")),
    ("compound_question", binary("Is the site available and responding?")),
    ("compound_question", binary("Does the customer want to cancel or return the order?")),
    ("compound_question", binary("Does the message mention or imply that it was opened?")),
    ("compound_question", binary("Does it explicitly or implicitly ask for a discount?")),
    ("compound_question", binary("Does the customer ask where and when the parcel will come?")),
    ("compound_question", binary("Does the email ask us to call back or send a message?")),
    ("compound_question", binary("Does she need help with setting up or using the product?")),
    ("compound_question", binary("Are the terms and conditions mentioned?")),
    ("compound_question", binary("Does the patient report chest pain and shortness of breath?")),
    ("compound_question", binary("If the item is late and damaged, is a refund due?")),
    ("compound_question", binary('Does the customer ask "why?" or "how?"?')),
    ("compound_question", binary("Is it urgent? Yes or no?")),
    (
        "compound_question",
        single(
            "Does the customer keep the item or send it back?",
            {"keep": "it stays", "return": "it comes back", "unclear": None},
        ),
    ),
    ("compound_question", single("Which team should handle this and contact the customer?")),
    ("arithmetic_question", binary("Does the customer ask how many seats they have?")),
    ("arithmetic_question", binary("Does the customer say she waited more than 30 days?")),
    ("arithmetic_question", binary("Does the customer expect a reply within 24 hours?")),
    ("arithmetic_question", binary("Does the clause allow either party to end it in 30 days?")),
    ("arithmetic_question", binary("Does the ticket name more than one problem?")),
    ("arithmetic_question", binary("Is error 404 mentioned?")),
    ("arithmetic_question", binary("Does the customer ask for 50% of the price back?")),
    ("arithmetic_question", binary("Is the delivery date mentioned before the price?")),
    ("arithmetic_question", binary("Is the account number given?")),
    ("arithmetic_question", ordinal("How many people are affected?", ["one", "a team", "all"])),
    (
        "arithmetic_question",
        ordinal("How many stars would she give?", ["1: no", "2: so", "3: yes"]),
    ),
    ("leading_question", binary("Does the customer clearly ask for a refund?")),
    ("leading_question", binary("Does the customer say it is obviously broken?")),
    ("leading_question", binary("Is the answer right?")),
    ("leading_question", single("Which answer is right, the first or the second?")),
    ("leading_question", binary(outcomes={"yes": "gives the correct answer", "no": "does not"})),
    ("context_in_question", binary(f"Does the customer ask for money back? {'Money. ' * 30}")),
]


@pytest.mark.parametrize(("rule", "decision"), FIRES)
def test_fires_alone(rule, decision):
    assert found_in(decision) == [rule]


@pytest.mark.parametrize(("rule", "decision"), MISSES)
def test_a_near_miss_is_silent(rule, decision):
    silent = {"no_statement"} - {rule}
    assert [name for name in found_in(decision) if name not in silent] == []


@pytest.mark.parametrize("cases", [FIRES, MISSES])
def test_every_rule_of_the_theme_has_cases(cases):
    assert {rule for rule, _ in cases} == rules_of("questions")


def test_a_double_negation_is_one_finding():
    from steelyard.decisions.lint.service import lint_request

    decision = {"id": "d", **binary("Is it not unlikely that she pays?")}
    [warning] = lint_request({"context": CONTEXT, "decisions": [decision]}).warnings
    assert "twice" in warning.message


def test_a_short_question_may_be_longer_than_its_context():
    assert found_in(binary("Does the customer ask for money back?"), context="Refund!") == []


def test_a_quotation_longer_than_the_context_belongs_there():
    decision = binary(f"Is it urgent? {LONG_QUOTATION}")
    assert found_in(decision, context="Ticket 1.") == ["context_in_question"]
    assert found_in(decision) == ["no_statement"]
