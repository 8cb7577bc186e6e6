"""Rows that two people labelled apart."""

from __future__ import annotations

from steelyard.client import Client


def label_apart(client: Client, dataset_id: str, *, n_rows: int, n_agreed: int) -> None:
    """Record what Ann and Bob say of a dataset's first rows of ``make_rows``, the same of some."""
    answers = [
        {
            "row": row,
            "reviewer": who,
            "outcomes": {"route": "other" if who == "bob" and row >= n_agreed else "billing"},
        }
        for row in range(n_rows)
        for who in ("ann", "bob")
    ]
    client.drafts.import_answers(client.drafts.create(dataset_id).id, answers)
