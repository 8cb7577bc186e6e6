"""Rules about the outcomes of a single decision."""

from __future__ import annotations

import pytest

from steelyard.decisions.lint.similarity import MAX_COMPARED, near_pairs
from support.decisions.linting import Case, binary, found_in, ordinal, rules_of, single

NAMES = [f"{first}{second}" for first in ("ash", "bay", "elm", "fir", "oak") for second in "klmnpr"]
SENTENCE = "the customer was charged for something that was never ordered by anybody in the house"


def outcomes(*listed: str, **described: str | None):
    return single("What is it about?", list(listed) if listed else described)


FIRES: list[Case] = [
    ("no_way_out", outcomes("billing", "shipping", "technical")),
    ("no_way_out", outcomes(billing="charges and other money matters", shipping="parcels")),
    ("no_way_out", outcomes(invoice="a bill", receipt="proof that it was paid")),
    ("vague_outcome", outcomes("option 1", "option 2", "none")),
    ("vague_outcome", outcomes("a", "b", "neither")),
    ("vague_outcome", outcomes("17", "42", "other")),
    ("vague_outcome", outcomes("billing", "shipping", "misc")),
    ("missing_descriptions", outcomes("billing", "shipping", "technical", "other")),
    ("missing_descriptions", outcomes(billing="money", shipping=None, other=None)),
    ("overlapping_outcomes", outcomes("refund", "refund request", "other")),
    (
        "overlapping_outcomes",
        outcomes(refund="money was paid back", refund_request="asks for money", other=None),
    ),
    ("overlapping_outcomes", outcomes("refund", "Refunds", "other")),
    ("overlapping_outcomes", outcomes("billing_issue", "Issue: billing", "other")),
    (
        "overlapping_outcomes",
        outcomes(
            billing="questions about a payment or an invoice",
            finance="Question about payments or invoices.",
            other=None,
        ),
    ),
    (
        "duplicate_descriptions",
        outcomes(billing="a charge was wrong", shipping="A charge was wrong.", other=None),
    ),
    (
        "duplicate_descriptions",
        ordinal(rubric=["a typo", "one user is stuck", "one user is stuck"]),
    ),
    ("too_many_outcomes", outcomes(**{name: f"all of {name}" for name in NAMES[:26]}, other=None)),
    ("binary_as_single", outcomes("yes", "no")),
    ("binary_as_single", outcomes("False", "True")),
    ("binary_as_single", outcomes(no="keeps it", yes="wants money back")),
    ("scale_as_single", outcomes("low", "medium", "high")),
    ("scale_as_single", outcomes("high_risk", "low_risk", "medium_risk")),
    ("scale_as_single", outcomes("low", "normal", "high", "urgent")),
    ("scale_as_single", outcomes("1", "2", "3", "4", "5")),
    ("scale_as_single", outcomes("P1", "P2", "P3")),
    ("scale_as_single", outcomes("1 star", "2 stars", "3 stars")),
    ("scale_as_single", outcomes("under 18", "18-64", "65+")),
    ("scale_as_single", outcomes("0-10k", "10k-50k", "50k+")),
    ("scale_as_single", outcomes("never", "sometimes", "always")),
    (
        "scale_as_single",
        outcomes("very negative", "negative", "neutral", "positive", "very positive"),
    ),
    ("long_outcome_names", outcomes(SENTENCE, "a wrong parcel", "other")),
    ("long_outcome_names", outcomes(**{"x" * 501: "a long one", "parcel": "late", "other": None})),
]

MISSES: list[Case] = [
    ("no_way_out", outcomes("billing", "shipping", "other")),
    ("no_way_out", outcomes("billing", "shipping", "n/a")),
    ("no_way_out", outcomes("billing", "shipping", "none_of_these")),
    ("no_way_out", outcomes("Rechnung", "Versand", "Sonstiges")),
    ("no_way_out", outcomes("refund", "no_refund")),
    ("no_way_out", outcomes("spam", "not spam")),
    ("no_way_out", outcomes("valid", "invalid")),
    ("no_way_out", outcomes("new customer", "existing customer")),
    ("no_way_out", outcomes("approve", "reject")),
    ("no_way_out", outcomes("refund", "replace", "escalate")),
    ("no_way_out", outcomes("refund", "replace", "escalate to a manager")),
    ("no_way_out", outcomes("positive", "neutral", "negative")),
    ("no_way_out", outcomes(refund="money back", exchange="another size", rest="anything else")),
    (
        "no_way_out",
        outcomes(hate="attacks a group", violence="threatens harm", safe="violates none"),
    ),
    ("vague_outcome", outcomes(a="the first text", b="the second text", neither=None)),
    ("vague_outcome", outcomes("C", "Java", "none")),
    ("vague_outcome", outcomes("猫", "犬", "その他")),
    ("vague_outcome", single("Which year is it about?", ["2023", "2024", "unknown"])),
    ("missing_descriptions", outcomes("billing", "shipping", "other")),
    ("missing_descriptions", outcomes(billing="money", shipping="parcels", other=None)),
    (
        "missing_descriptions",
        outcomes(
            "asks for money back",
            "asks where the parcel is",
            "wants to change the order",
            "none of these",
        ),
    ),
    ("overlapping_outcomes", outcomes("spam", "not spam")),
    ("overlapping_outcomes", outcomes("positive", "very positive", "other")),
    ("overlapping_outcomes", outcomes("approve", "approve with changes", "reject")),
    ("overlapping_outcomes", outcomes("C++", "C#", "none")),
    ("overlapping_outcomes", outcomes("iphone 12", "iphone 13", "other")),
    ("overlapping_outcomes", outcomes("en to fr", "fr to en", "other")),
    ("overlapping_outcomes", outcomes("2-1", "1-2", "other score")),
    ("overlapping_outcomes", outcomes("debug", "bug", "none")),
    (
        "overlapping_outcomes",
        outcomes(
            early="the parcel came before the day that was promised",
            late="the parcel came after the day that was promised",
            other=None,
        ),
    ),
    (
        "duplicate_descriptions",
        outcomes(billing="a charge was wrong", shipping="a parcel was wrong", other=None),
    ),
    ("duplicate_descriptions", ordinal(rubric=["a typo", "a page fails", "every page fails"])),
    ("too_many_outcomes", outcomes(**{name: f"all of {name}" for name in NAMES[:25]}, other=None)),
    ("binary_as_single", outcomes("yes", "no", "unclear")),
    ("binary_as_single", binary(outcomes={"yes": "wants it", "no": "keeps it"})),
    ("scale_as_single", outcomes("low", "high", "unknown")),
    ("scale_as_single", outcomes("small talk", "big news", "other")),
    ("scale_as_single", outcomes(**{"1": "invoices", "2": "parcels", "3": "none of these"})),
    (
        "long_outcome_names",
        outcomes(**{SENTENCE: "a wrong charge", "parcel": "late", "other": None}),
    ),
    ("long_outcome_names", outcomes(SENTENCE[:80], "a wrong parcel", "other")),
]


@pytest.mark.parametrize(("rule", "decision"), FIRES)
def test_fires_alone(rule, decision):
    assert found_in(decision) == [rule]


@pytest.mark.parametrize(("rule", "decision"), MISSES)
def test_a_near_miss_is_silent(rule, decision):
    assert found_in(decision) == []


@pytest.mark.parametrize("cases", [FIRES, MISSES])
def test_every_rule_of_the_theme_has_cases(cases):
    assert {rule for rule, _ in cases} == rules_of("outcomes")


def test_names_of_one_pattern_are_not_compared_without_end():
    words = " ".join(f"w{letter}" for letter in "abcdefghijklmnopqrst")
    sets = [frozenset((*words.split(), str(number))) for number in range(255)]
    assert len(list(near_pairs(sets))) == MAX_COMPARED
    assert list(near_pairs(sets[:3])) == [(0, 1), (0, 2), (1, 2)]
