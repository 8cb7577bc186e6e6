"""Rules about references of a question."""

from __future__ import annotations

import pytest

from support.decisions.linting import CONTEXT, binary, found_in, rules_of, single

ORDER = {"order": {"items": [{"price": 4}], "paid_at": None}, "status": "shipped late"}
OTHERS = (
    {"id": "refund", **binary("Does the customer want one payment back?")},
    {"id": "needs_reply", **binary("Is an answer expected?")},
    {"id": "isUrgent", **binary("Is it urgent?")},
    {"id": "q3", **binary("Is the writer angry?")},
)

#: Rule, question, and the context where it is not the usual one.
FIRES = [
    ("references_ids", "Is the answer to the previous question yes?", CONTEXT),
    ("references_ids", "Given the previous answer, is it urgent enough for a call?", CONTEXT),
    ("references_ids", "Is the question above about money?", CONTEXT),
    ("references_ids", "If refund is yes, should it be paid at once?", CONTEXT),
    ("references_ids", "Does that follow from the answer to refund?", CONTEXT),
    ("references_ids", 'Is it the same as in the "refund" decision?', CONTEXT),
    ("references_ids", "Does `refund` hold for the whole order?", CONTEXT),
    ("references_ids", "Is needs_reply settled by the first sentence?", CONTEXT),
    ("references_ids", "Is it true that isUrgent holds?", CONTEXT),
    ("references_ids", "Is the mood that of q3?", CONTEXT),
    ("missing_field_reference", "Is `order.total` high for a shop like this?", ORDER),
    ("missing_field_reference", "Is `customer` a company?", ORDER),
    ("missing_field_reference", "Is `items[0].cost` plausible?", ORDER),
]

MISSES = [
    ("references_ids", "Does the customer ask for a refund?", CONTEXT),
    ("references_ids", "Does the customer dispute the refund decision?", CONTEXT),
    ("references_ids", 'Does the customer use the word "refund"?', CONTEXT),
    ("references_ids", "Is this a follow-up to a previous question?", CONTEXT),
    ("references_ids", "Does the reply answer the previous question?", CONTEXT),
    ("references_ids", "Does this repeat the customer's previous question?", CONTEXT),
    ("references_ids", "Is the needs_reply field set?", {"needs_reply": True, "text": CONTEXT}),
    ("references_ids", "Was Q3 a good quarter?", CONTEXT),
    ("missing_field_reference", "Is `order.items[0].price` plausible?", ORDER),
    ("missing_field_reference", "Is `paid_at` empty?", ORDER),
    ("missing_field_reference", "Is the status `shipped`?", ORDER),
    ("missing_field_reference", "Is `null` a value here?", ORDER),
    ("missing_field_reference", "Does `rm -rf` occur?", ORDER),
    ("missing_field_reference", "Is `total` named in the text?", CONTEXT),
]


@pytest.mark.parametrize(("rule", "question", "context"), FIRES)
def test_fires_alone(rule, question, context):
    assert found_in(binary(question), *OTHERS, context=context) == [rule]


@pytest.mark.parametrize(("rule", "question", "context"), MISSES)
def test_a_near_miss_is_silent(rule, question, context):
    assert found_in(binary(question), *OTHERS, context=context) == []


@pytest.mark.parametrize("cases", [FIRES, MISSES])
def test_every_rule_of_the_theme_has_cases(cases):
    assert {case[0] for case in cases} == rules_of("references")


def test_an_outcome_in_back_quotes_is_no_field_and_no_other_decision():
    outcomes = {"refund": "money back", "needs_reply": "a question", "other": None}
    decision = single("Is it `refund`, `needs_reply` or `other`?", outcomes)
    assert found_in(decision, *OTHERS, context=ORDER) == []
