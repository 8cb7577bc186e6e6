"""Decisions as people write them with care: nothing in them is worth a warning."""

from __future__ import annotations

import pytest

from steelyard.decisions.lint.service import lint_request
from support.decisions.linting import CONTEXT, binary, ordinal, single

MODERATION = {
    "hate": "attacks people for who they are",
    "violence": "threatens harm or calls for it",
    "sexual": "describes sexual acts",
    "self_harm": "tells of hurting oneself, or asks how",
    "none": "breaks no rule",
}

WELL_FORMED = {
    "support team": single(
        "Which team should own this ticket?",
        {
            "billing": "charges, invoices and refunds",
            "shipping": "where a parcel is, and what came damaged",
            "technical": "the app or the product does not work",
            "other": "anything else",
        },
    ),
    "refund asked": binary(
        "Does the customer ask for money back?",
        outcomes={
            "yes": "asks for a refund, a chargeback or store credit",
            "no": "asks for something else, or for nothing",
        },
    ),
    "refund rules": binary(
        "Does the customer ask for a refund? Store credit counts as a refund. A replacement does "
        "not, and neither does a discount on the next order."
    ),
    "urgency": ordinal(
        "How soon does this need an answer?",
        ["no date is given and nothing is lost by waiting", "within the week", "today", "at once"],
    ),
    "incident severity": ordinal(
        "How severe is the incident that the report describes?",
        [
            "cosmetic: a typo or a crooked layout",
            "minor: one feature is slow, and there is a way round",
            "major: a feature fails for many customers",
            "critical: data is lost or nobody can log in",
        ],
        outcomes=["0", "1", "2", "3"],
    ),
    "sev levels": ordinal(
        "Which severity does the on-call guide give this?",
        ["everything is down", "a region or a main feature is down", "a single customer is hit"],
        outcomes=["SEV1", "SEV2", "SEV3"],
    ),
    "moderation": single("Which rule does the post break?", MODERATION),
    "spam": single("What is this message?", ["spam", "not spam"]),
    "toxicity": ordinal(
        "How hostile is the comment towards other people?",
        ["friendly or neutral", "mocks somebody", "insults somebody", "threatens somebody"],
    ),
    "jailbreak": binary("Does the user ask the assistant to ignore its instructions?"),
    "personal data": binary(
        "Does the text contain personal data such as names, addresses or phone numbers?"
    ),
    "sentiment": single("What does the review think of the hotel?", ["good", "bad", "mixed"]),
    "satisfaction": ordinal(
        "How satisfied is the customer at the end of the talk?",
        ["says they will leave", "repeats the complaint", "accepts the answer", "thanks the agent"],
    ),
    "language": single("Which language is it written in?", ["English", "French", "other"]),
    "model routing": single(
        "Which model should answer the request?",
        {
            "small": "a fact, a rewrite or small talk",
            "large": "several steps of reasoning, or code",
            "human": "legal or medical advice, or a complaint about us",
        },
    ),
    "tool routing": single(
        "Which tool does the assistant need next?",
        {
            "search": "the answer is likely on the web",
            "calculator": "numbers have to be worked out",
            "calendar": "a meeting is made, moved or called off",
            "no_tool": "the talk itself has the answer",
        },
    ),
    "approval": single(
        "What should happen with the expense claim?",
        {
            "approve": "within the policy, with a receipt",
            "reject": "private, or against the policy",
            "review": "the receipt is missing or hard to read",
        },
    ),
    "refund policy": binary(
        "Is the customer entitled to a refund under the policy in the context?",
        policy={
            "action_costs": {
                "refund": {"yes": 0, "no": 40},
                "refuse": {"yes": 25, "no": 0},
                "ask": {"yes": 5, "no": 5},
            },
            "abstain_below": 0.6,
        },
    ),
    "fraud": binary(
        "Does the order look fraudulent?",
        costs={"yes": 3, "no": 90},
        abstain={"min_probability": 0.7},
    ),
    "churn": binary("Is the customer at risk of leaving?", weights={"yes": 4}),
    "lead quality": ordinal(
        "How ready is the company to buy?",
        ["is only curious", "compares vendors", "has a budget", "asks for a contract"],
    ),
    "relevance": ordinal(
        "How well does the passage answer the query?",
        ["other topic", "same topic, no answer", "part of the answer", "the whole answer"],
    ),
    "faithfulness": binary("Is every claim in the summary supported by the article?"),
    "comparison": single(
        "Which reply helps the customer more?", ["the first", "the second", "both the same"]
    ),
    "intent": single(
        "What does the caller want?",
        {
            "book": "a new appointment",
            "move": "another time for an appointment",
            "cancel": "no appointment any more",
            "unclear": None,
        },
    ),
    "contract": binary("Does the clause let the landlord raise the rent during the term?"),
    "triage": single(
        "Where should the patient be sent?",
        {
            "emergency": "chest pain, stroke signs or heavy bleeding",
            "doctor": "needs to be seen in the next days",
            "self_care": "a cold, a bruise or a small cut",
            "unclear": "too little is told to say",
        },
    ),
    "article desk": single(
        "Which desk should edit the article?",
        {"politics": None, "business": None, "sport": None, "culture": None, "other": None},
    ),
    "candidate": ordinal(
        "How much experience with Python does the resume show?",
        ["none is named", "courses only", "one job with it", "several jobs with it"],
    ),
    "structured question": single(
        {"task": "Choose the product that the review is about.", "note": "Do not guess."},
        ["kettle", "toaster", "unknown"],
    ),
    "alternative": single(
        "Is the sender a new customer or an existing one?",
        {"new": "has bought nothing yet", "existing": "names an order or an account"},
    ),
}


@pytest.mark.parametrize("decision", WELL_FORMED.values(), ids=WELL_FORMED)
def test_there_is_no_warning(decision):
    request = {"context": CONTEXT, "decisions": [{"id": "decision", **decision}]}
    assert [w for w in lint_request(request).warnings if w.severity == "warning"] == []


def test_there_is_none_when_they_are_asked_together():
    decisions = [{"id": name, **decision} for name, decision in WELL_FORMED.items()]
    warnings = lint_request({"context": CONTEXT, "decisions": decisions}).warnings
    assert [warning for warning in warnings if warning.severity == "warning"] == []


#: Yes-or-no questions with words that rules look for, in places where they do no harm.
PLAIN_QUESTIONS = """
Is the customer satisfied with the answer?
Does the customer threaten legal action or a chargeback?
Would a reasonable reader find this insulting?
Does the review talk about delivery and packaging?
Does the customer ask for help with login and password?
Can this be answered from the help pages?
Should this be escalated to a manager?
Is the post hate speech under our policy?
Is the tone sarcastic or ironic?
Does the summary contain a fact that contradicts the article?
Does the customer want to know whether the item is in stock or on order?
Is the bug reproducible on Windows and Linux?
Is the code free of security holes?
Is the contract governed by the law of England and Wales?
Does the answer cite a source?
Has the customer contacted us before?
Is the ticket a duplicate of an earlier one?
Did the seller ship the right item?
Does the customer name a date by which they need an answer?
Is the email from a lawyer or a court?
Does the message include an order number or other reference?
Does the customer say they are on the Pro plan or a trial?
Does the customer ask to change the delivery date after ordering?
Does the customer state what they want and when?
Does the caller sound confused or upset?
Is the claim about health or medicine?
Does the customer ask to speak to a manager or supervisor?
Does the customer demand that we stop writing to them?
Is the price mentioned over the phone?
""".strip().splitlines()


@pytest.mark.parametrize("question", PLAIN_QUESTIONS)
def test_a_plain_question_has_no_finding(question):
    decision = {"id": "decision", **binary(question)}
    assert lint_request({"context": CONTEXT, "decisions": [decision]}).warnings == []
