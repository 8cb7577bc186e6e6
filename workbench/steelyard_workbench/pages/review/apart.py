"""Rows that reviewers label apart: possible actions, and both answers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, structs

from steelyard.review.wire import BlindRow, BlindStatus, DraftRow, RowAnswer

_YOURS = "You label this row without seeing its label, or what another says."
_OTHERS = "Reviewers label this row independently. It cannot be edited until all have answered."
_KNOWN = (
    "The label of this row is known: it scores its reviewers, and no answer or edit changes it."
)
_DISPUTED = "The reviewers of this row disagree. Choose the right label."


def is_undecided(row: DraftRow) -> bool:
    """Whether a row was not decided on yet."""
    return row.now.state in ("untouched", "skipped")


def is_apart(row: DraftRow) -> bool:
    """Whether a row waits for reviewers' answers, and takes no edit."""
    return row.blind is not UNSET and row.blind.status == "waiting"


def is_yours(row: DraftRow) -> bool:
    """Whether a row waits for reviewers of whom the one who asks is one."""
    return is_apart(row) and row.blind is not UNSET and row.blind.is_yours


def is_disputed(row: DraftRow) -> bool:
    """Whether reviewers answered a row differently, and it was not decided since."""
    is_open = row.known is not True and is_undecided(row)
    return is_open and row.blind is not UNSET and row.blind.status == "disagreed"


def is_to_do(row: DraftRow) -> bool:
    """Whether a row that the reviewer was assigned is still to be labelled."""
    if row.blind is UNSET:
        return is_undecided(row)
    return row.blind.status == "waiting" and not row.blind.answers


def note_of(row: DraftRow) -> str:
    """Return the note on a row that reviewers label apart; empty of any other."""
    if is_yours(row):
        return _YOURS
    note = _OTHERS if is_apart(row) else _DISPUTED if is_disputed(row) else ""
    return f"{note} {_KNOWN}".strip() if row.known is True else note


def picked_of(row: DraftRow) -> dict[str, str]:
    """Return the outcomes that are chosen already: by oneself, or by all of those who dispute others."""
    if row.blind is UNSET or not (is_yours(row) or is_disputed(row)):
        return {}
    answers = [answer.outcomes for answer in row.blind.answers]
    first = answers[0] if answers else {}
    return {
        name: outcome
        for name, outcome in first.items()
        if all(s.get(name) == outcome for s in answers)
    }


def reviewers_choosing(row: DraftRow, decision: str, outcome: str) -> list[str]:
    """Return who said an outcome, once all have answered."""
    if row.blind is UNSET or is_apart(row):
        return []
    return [
        answer.reviewer for answer in row.blind.answers if answer.outcomes.get(decision) == outcome
    ]


def answer_text(answer: RowAnswer) -> str:
    """Return an answer in words.

    >>> answer_text(RowAnswer(reviewer="ann", at=0, outcomes={"team": "billing"}, exclude=False))
    'team: billing'
    """
    if answer.exclude:
        return "exclude the row"
    return "; ".join(f"{name}: {outcome}" for name, outcome in answer.outcomes.items())


def with_answer(
    row: DraftRow, reviewer: str, outcomes: Mapping[str, str], *, is_excluded: bool
) -> DraftRow:
    """Return a row as it is shown once the reviewer's answer is on its way."""
    own = RowAnswer(reviewer=reviewer, at=0.0, outcomes=dict(outcomes), exclude=is_excluded)
    blind = BlindRow(status="waiting", is_yours=True, answers=[own])
    return structs.replace(row, blind=blind)


def with_status(row: DraftRow, status: BlindStatus) -> DraftRow:
    """Return a row with the status of the reviewer's answer."""
    if row.blind is UNSET:
        return row
    return structs.replace(row, blind=structs.replace(row.blind, status=status))
