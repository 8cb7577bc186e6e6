"""Rules about the levels of an ordinal decision."""

from __future__ import annotations

import pytest

from support.decisions.linting import Case, found_in, ordinal, rules_of

OUTAGE = ["one user is slowed down", "a team cannot work", "all customers are down"]
STEPS = ["draft", "review", "legal", "design", "build", "test", "stage", "ship", "sell", "support"]

FIRES: list[Case] = [
    ("unordered_levels", ordinal(rubric=OUTAGE, outcomes=["1", "3", "2"])),
    ("unordered_levels", ordinal("How urgent is it?", ["at once", "today", "any time"])),
    (
        "unordered_levels",
        ordinal("How severe is it?", ["high: all are down", "medium: a team", "low: one user"]),
    ),
    (
        "unordered_levels",
        ordinal("How severe is it?", ["low: one user", "critical: all are down", "medium: a team"]),
    ),
    ("unordered_levels", ordinal(rubric=OUTAGE, outcomes=["low", "high", "medium"])),
    (
        "unordered_levels",
        ordinal("How good is it?", ["excellent: all of it", "fair: half", "poor: none of it"]),
    ),
    ("unordered_levels", ordinal(rubric=["1 star: broken", "5 stars: perfect", "3 stars: fine"])),
    ("unanchored_rubric", ordinal(rubric=["0", "1", "2"])),
    ("unanchored_rubric", ordinal(rubric=["Severity 1", "Severity 2", "Severity 3"])),
    ("unanchored_rubric", ordinal(rubric=["1", "2", "3"])),
    ("unanchored_rubric", ordinal(rubric=["level 0", "level 1", "level 2"])),
    ("unanchored_rubric", ordinal(rubric=["any time", None, None])),
    ("unanchored_rubric", ordinal(rubric=["calm", "angry"], outcomes=["calm", "angry"])),
    ("unanchored_rubric", ordinal(rubric=["somewhat urgent", "quite urgent", "very urgent"])),
    ("unanchored_rubric", ordinal(rubric=["not urgent", "urgent", "very urgent"])),
    ("unanchored_rubric", ordinal(rubric=["low", "medium", "high"])),
    ("unanchored_rubric", ordinal(rubric=["Low impact.", "Medium impact.", "High impact."])),
    ("too_many_levels", ordinal(rubric=[f"it is in {step}" for step in [*STEPS, "sunset"]])),
]

MISSES: list[Case] = [
    ("unordered_levels", ordinal(rubric=OUTAGE, outcomes=["1", "3", "5"])),
    ("unordered_levels", ordinal(rubric=OUTAGE, outcomes=["low", "medium", "high"])),
    ("unordered_levels", ordinal("How urgent is it?", ["can wait", "this week", "today", "now"])),
    (
        "unordered_levels",
        ordinal(
            "How severe is it?",
            ["critical: all are down", "major: a team", "minor: one user"],
            outcomes=["P1", "P2", "P3"],
        ),
    ),
    (
        "unordered_levels",
        ordinal("How bad is it?", ["good: nothing to mend", "fair: a scratch", "poor: it broke"]),
    ),
    (
        "unordered_levels",
        ordinal("How severe is it?", ["low impact", "a way round exists", "no way round"]),
    ),
    ("unordered_levels", ordinal(rubric=["5 days", "2 days", "on the same day"])),
    ("unordered_levels", ordinal(rubric=["1 to 10 people", "11 to 100 people", "over 100"])),
    ("unanchored_rubric", ordinal(rubric=OUTAGE)),
    ("unanchored_rubric", ordinal("How angry is she?", ["thanks us", "is annoyed", "insults us"])),
    ("unanchored_rubric", ordinal(rubric=["any time", "today", None])),
    ("unanchored_rubric", ordinal(rubric=["not urgent", "urgent"])),
    ("unanchored_rubric", ordinal(rubric=["minor inconvenience", "major outage", "data is lost"])),
    ("too_many_levels", ordinal(rubric=[f"it is in {step}" for step in STEPS])),
]


@pytest.mark.parametrize(("rule", "decision"), FIRES)
def test_fires_alone(rule, decision):
    assert found_in(decision) == [rule]


@pytest.mark.parametrize(("rule", "decision"), MISSES)
def test_a_near_miss_is_silent(rule, decision):
    assert found_in(decision) == []


@pytest.mark.parametrize("cases", [FIRES, MISSES])
def test_every_rule_of_the_theme_has_cases(cases):
    assert {rule for rule, _ in cases} == rules_of("rubrics")
