"""Decisions to lint, and their warnings."""

from __future__ import annotations

from typing import Any

from steelyard.decisions.lint.registry import RULES
from steelyard.decisions.lint.service import lint_request

CONTEXT = (
    "My card was charged twice for order 118, and the parcel has not come either. Please send one "
    "payment back today, I leave tomorrow. The app crashed when I opened the invoice page, and my "
    "last two mails were not answered. I have been a customer for years and never had this before; "
    "if nobody calls me back I will take my business elsewhere and say so in my review."
)

#: One case: the rule, and the fields of the decision (``single(...)`` and the like give them).
Case = tuple[str, dict[str, Any]]


def single(question: str = "Which team should own this?", outcomes: Any = None, **fields: Any):
    """A single decision; without outcomes, with some that nothing is wrong with."""
    described = {"billing": "charges and refunds", "shipping": "where a parcel is", "other": None}
    return {"question": question, "outcomes": outcomes or described, **fields}


def binary(question: str = "Does the customer ask for money back?", **fields: Any):
    """A binary decision."""
    return {"kind": "binary", "question": question, **fields}


def ordinal(question: str = "How soon is an answer needed?", rubric: Any = None, **fields: Any):
    """An ordinal decision; without a rubric, with one that nothing is wrong with."""
    lines = rubric or ["any time this week", "today", "at once"]
    return {"kind": "ordinal", "question": question, "rubric": lines, **fields}


def found_in(
    decision: dict[str, Any], *others: dict[str, Any], context: Any = CONTEXT
) -> list[str]:
    """Return the rules found on the first decision of a request, checking that others are clean."""
    decisions = [{"id": "first", **decision}, *others]
    warnings = lint_request({"context": context, "decisions": decisions}).warnings
    assert {warning.decision for warning in warnings} <= {"first"}, warnings
    return [warning.rule for warning in warnings]


def rules_of(theme: str) -> set[str]:
    """Return the names of a theme's rules: those that live in its module."""
    return {rule.name for rule in RULES if rule.check.__module__.endswith(f".{theme}")}
