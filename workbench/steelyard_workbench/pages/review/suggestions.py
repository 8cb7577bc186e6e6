"""A model's suggestions for the rows of a draft, and how often the reviewer agrees."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.calibration.intervals import proportion_interval
from steelyard.review.wire import MAX_EDITS, DraftRow, RowNow
from steelyard.wire.measures import Measure
from steelyard_workbench.pages.review.apart import is_apart, is_undecided
from steelyard_workbench.parts.datasets.questions import (
    expected_of,
    questions_of,
    relabel_fields,
    top_of,
    with_label,
    with_now,
)

#: Decision to outcome to probability, of one row.
Suggested = Mapping[str, Mapping[str, float]]


class Suggestions:
    """The suggestions of one model for one draft.

    A row is as sure as its least sure decision, and the reviewer agrees with it where all of its
    labels are the suggested ones. Rows that were accepted without being looked at say nothing of
    agreement. ``audit`` has rows that were drawn to be decided without seeing the suggestion.
    """

    def __init__(self, model: str = "") -> None:
        self.model = model
        self.audit: set[int] = set()
        self._by_row: dict[int, Suggested] = {}
        self._taken: set[int] = set()
        self._agreed: dict[int, bool] = {}

    def __len__(self) -> int:
        return len(self._by_row)

    def __contains__(self, row: int) -> bool:
        return row in self._by_row

    def put(self, row: int, suggested: Suggested) -> None:
        """Note a model's answer for a row."""
        self._by_row[row] = suggested

    def of(self, row: DraftRow) -> Suggested:
        """Return the visible suggestion of a row: nothing for an undecided row of the audit."""
        return {} if self.is_hidden(row) else self._by_row.get(row.row, {})

    def is_hidden(self, row: DraftRow) -> bool:
        """Whether a row is of the audit and not decided, or labelled by two apart."""
        return is_apart(row) or (row.row in self.audit and is_undecided(row))

    def sureness(self, row: int) -> float:
        """Return the probability of the top outcome of the least sure decision; 1 if unknown."""
        suggested = self._by_row.get(row, {})
        return min(
            (max(probabilities.values()) for probabilities in suggested.values()), default=1.0
        )

    def order(self, row: DraftRow) -> tuple[bool, float]:
        """Return where a row comes: the audit first, then the least sure."""
        return row.row not in self.audit, self.sureness(row.row)

    def note(self, now: RowNow) -> None:
        """Note how a row stands that was decided, or taken back."""
        if now.row not in self._by_row:
            return
        if now.state not in ("accepted", "relabelled"):
            self._agreed.pop(now.row, None)
        elif now.row not in self._taken:
            tops = {
                name: top_of(probabilities) for name, probabilities in self._by_row[now.row].items()
            }
            labels = {name: top_of(label) for name, label in now.labels.items() if label}
            self._agreed[now.row] = all(labels.get(name) == top for name, top in tops.items())

    def agreement(self, *, at_least: float = 0.0, of_audit: bool = False) -> Measure | None:
        """Return how often the reviewer agreed, on rows as sure as ``at_least`` or in the audit, if any."""
        agreements = [
            agreed
            for row, agreed in self._agreed.items()
            if self.sureness(row) >= at_least and (not of_audit or row in self.audit)
        ]
        if not agreements:
            return None
        interval = proportion_interval(sum(agreements), len(agreements))
        share = sum(agreements) / len(agreements)
        return Measure(value=share, low=interval.low, high=interval.high, n=len(agreements))

    def sure_rows(self, rows: Sequence[DraftRow], at_least: float) -> list[DraftRow]:
        """Return the undecided rows that are as sure as this, the surest first."""
        sure = [
            row
            for row in rows
            if row.row in self._by_row
            and row.row not in self.audit
            and is_undecided(row)
            and not is_apart(row)
            and self.sureness(row.row) >= at_least
        ]
        return sorted(sure, key=lambda row: -self.sureness(row.row))

    def draw(self, rows: Sequence[DraftRow], n: int) -> list[DraftRow]:
        """Draw rows for the audit at random, and return the others."""
        drawn = {row.row for row in random.sample(list(rows), min(n, len(rows)))}
        self.audit |= drawn
        return [row for row in rows if row.row not in drawn]

    def take(
        self, rows: Sequence[DraftRow]
    ) -> tuple[list[dict[str, Any]], list[DraftRow], list[DraftRow]]:
        """Return the edits that take suggestions, as many as one call takes, with rows before and after."""
        edits: list[dict[str, Any]] = []
        before: list[DraftRow] = []
        after: list[DraftRow] = []
        for row in rows:
            suggested = self._by_row[row.row]
            of_row, changed = edits_to(row, {id_: top_of(of) for id_, of in suggested.items()})
            if len(edits) + len(of_row) > MAX_EDITS:
                break
            edits += of_row
            before.append(row)
            after.append(changed)
            self._taken.add(row.row)
        return edits, before, after


def edits_to(row: DraftRow, outcomes: Mapping[str, str]) -> tuple[list[dict[str, Any]], DraftRow]:
    """Return the edits that give a row outcomes by decision, and the row after them."""
    edits: list[dict[str, Any]] = []
    changed = row
    for question in questions_of(row.decisions):
        outcome = outcomes.get(question.id, "")
        if outcome in question.outcomes and outcome != expected_of(row, question.id):
            edit = {"row": row.row, "action": "relabel", "decision": question.id}
            edits.append(edit | relabel_fields(changed, question, outcome))
            changed = with_label(changed, question, outcome)
    if not edits:
        return [{"row": row.row, "action": "accept"}], with_now(row, state="accepted")
    return edits, changed
