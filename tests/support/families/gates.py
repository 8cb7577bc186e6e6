"""Verdicts of the gate on made-up rows."""

from __future__ import annotations

from steelyard.evaluations.measures.gate import judge
from support.models.scored_records import QUICK, records_from_rows


def contexts(rows):
    """Return the contexts of some rows."""
    return {row.context_sha256 for row in rows}


def judged(before, after, new=None, **options):
    """Judge rows; every context is new unless ``new`` names those that are."""
    new = contexts(before) if new is None else new
    return judge(
        records_from_rows(before),
        records_from_rows(after),
        against=options.pop("against", "parent"),
        is_new=[row.context_sha256 in new for row in after],
        bootstrap=options.pop("bootstrap", QUICK),
        **options,
    )
