"""Outcomes of a column as a person edits them."""

from __future__ import annotations

import json

import pytest

from steelyard.client.tables import (
    OutcomeEdit,
    convert,
    count_values,
    edit_outcomes,
    guess_mapping,
    propose_same,
    read_table,
)

VALUES = [
    "Billing",
    "BILLING",
    "billing ",
    "Refunds",
    "refund",
    "N/A",
    "n/a",
    "none",
    "tech_issue",
    "Tech issue",
    "Tech Issues",
    "Shipping",
    "Class",
]


def table_of(values, n=26):
    lines = [
        f"Message number {number} is here.;{values[number % len(values)]}" for number in range(n)
    ]
    return read_table("\n".join(["message;team", *lines]).encode(), "messy.csv")


def test_variants_by_case_spaces_plural_and_nothing_are_proposed():
    counts = count_values(table_of(VALUES), "team")
    proposed = propose_same(counts)
    groups = {}
    for value in counts:
        groups.setdefault(proposed.get(value, value), set()).add(value)
    assert sorted(map(sorted, groups.values())) == [
        ["BILLING", "Billing", "billing"],
        ["Class"],
        ["N/A", "n/a", "none"],
        ["Refunds", "refund"],
        ["Shipping"],
        ["Tech Issues", "Tech issue", "tech_issue"],
    ]
    assert propose_same({"a": 1, "b": 2}) == {}


def test_merged_renamed_and_described_outcomes_are_those_of_the_rows():
    table = table_of(VALUES)
    (label,) = guess_mapping(table).labels
    edits = {
        value: OutcomeEdit(same_as=first)
        for value, first in propose_same(count_values(table, "team")).items()
    }
    first = edits["BILLING"].same_as
    edits[first] = OutcomeEdit(name="billing", description="Money.")
    edited = edit_outcomes(label, edits)
    assert len(edited.outcomes) == 6
    assert edited.decisions()[0]["outcomes"]["billing"] == "Money."
    made = convert(table, guess_mapping(table).__class__(("message",), (edited,)))
    assert (len(made.lines), made.refused) == (26, [])
    found = {json.loads(line)["targets"]["team"] for line in made.lines}
    assert found == set(edited.outcomes)


def test_impossible_outcomes_are_reported():
    (label,) = guess_mapping(table_of(["one", "two"])).labels
    with pytest.raises(ValueError, match="one outcome left"):
        edit_outcomes(label, {"one": OutcomeEdit(same_as="two")})
    circle = {"one": OutcomeEdit(same_as="two"), "two": OutcomeEdit(same_as="one")}
    with pytest.raises(ValueError, match="clear one"):
        edit_outcomes(label, circle)
    assert edit_outcomes(label, {}) == label
