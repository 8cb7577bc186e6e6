"""Drafts of the state: found, checked to be open, and converted to wire form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import structs
from sqlalchemy import Connection, Row

from steelyard.datasets.access import require_dataset
from steelyard.errors import DraftConflictError, DraftSealedError, NotFoundError
from steelyard.review import store as rows
from steelyard.review import wire
from steelyard.review.duties import Duties, agree
from steelyard.review.labels import Originals
from steelyard.review.log import STATES, Entry, Places, Review
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.violations import show

_decode_sealed = decoder_of(wire.SealedDraft).decode


def require_draft(connection: Connection, account_id: str, draft_id: str) -> Row[Any]:
    """Return a draft of an account."""
    row = rows.find_draft(connection, account_id, draft_id)
    if row is None:
        raise NotFoundError(f"There is no draft {show(draft_id)}; look at GET /v1/drafts.")
    return row


def lock_draft(connection: Connection, account_id: str, draft_id: str) -> Row[Any]:
    """Return a draft, locked until the transaction ends."""
    rows.find_draft(connection, account_id, draft_id, is_locked=True)
    row = require_draft(connection, account_id, draft_id)
    require_dataset(connection, account_id, row.dataset_id)
    return row


def draft_to_wire(
    row: Row[Any], review: Review | None, known: Places | tuple[()] = ()
) -> wire.Draft:
    """Return a draft as the wire has it; without a review, of one that has no edits.

    Known rows, whose labels stay, count as untouched.
    """
    counts: dict[str, int] = dict.fromkeys(STATES, 0)
    if review is not None:
        state = np.delete(review.state, known)
        for code, count in enumerate(np.bincount(state, minlength=len(STATES)).tolist()):
            counts[STATES[code]] = count
    touched = sum(counts.values()) - counts["untouched"]
    # A version may have fewer rows than places, and missing rows are not touched.
    counts["untouched"] = row.rows - touched
    noted = 0 if review is None else len(review.notes)
    return wire.Draft(**structs.asdict(summarise(row)), states=counts, noted=noted)


def rows_now(
    review: Review, rows: Sequence[int], originals: Originals, later: Sequence[Entry] = ()
) -> dict[int, wire.RowNow]:
    """Return rows as they stand, by row, with the labels that they have by now."""
    edits = review.last_edits(rows, later)
    return {
        row: wire.RowNow(
            row=row,
            state=fold.state,
            labels=originals.labels_now(row, fold.labels),
            relabelled=sorted(fold.labels),
            note=fold.note,
            edit=edits[row][0],
            reviewer=edits[row][1],
        )
        for row, fold in review.folds(rows, later).items()
    }


def receipt_of(
    draft_id: str,
    review: Review,
    later: Sequence[Entry],
    listed: Sequence[int],
    n_rows: int,
    originals: Originals,
    undone: int | None = None,
) -> wire.EditReceipt:
    """Return the changes of an entry, the last of ``later``."""
    last, now = later[-1], rows_now(review, listed, originals, later)
    return wire.EditReceipt(
        draft_id=draft_id,
        edits=n_rows,
        revision=last.number,
        undone=undone,
        rows=[now[row] for row in listed],
    )


def require_open(row: Row[Any]) -> Row[Any]:
    """Return a draft that takes edits."""
    if row.status != "open":
        sealed = _decode_sealed(row.sealed)
        raise DraftSealedError(
            f"The draft became version {sealed.version} of the dataset {sealed.dataset_id} and "
            "takes no more edits; begin another draft."
        )
    return row


def check_seen(
    review: Review,
    later: Sequence[Entry],
    edits: Sequence[wire.Edit],
    reviewer: str | None,
    originals: Originals,
) -> None:
    """Refuse edits of rows that another edited since they were seen."""
    moved = []
    last = review.last_edits([edit.row for edit in edits], later)
    for edit in edits:
        number, editor = last[edit.row]
        is_own = reviewer is not None and editor == reviewer
        if edit.seen is not None and number > edit.seen and not is_own:
            moved.append(edit.row)
    if not moved:
        return
    now = rows_now(review, moved, originals, later)
    details = [
        msgspec.to_builtins(wire.DraftConflict(row=row, now=now[row]))
        for row in dict.fromkeys(moved)
    ]
    raise DraftConflictError(
        f"{len(details)} of the rows were edited by another since they were seen, and nothing was "
        "applied; look at details and decide again.",
        details=details,
    )


def blind_to_wire(
    duties: Duties, row: int, reviewer: str | None, originals: Originals
) -> wire.BlindRow | None:
    """Return a row that several label apart as one who asks may see it; ``None`` of any other row."""
    names = duties.reviewers_of(row)
    if not duties.is_blind_at(row):
        return None
    given = duties.answers_of(row)
    if len(given) < len(names):
        given = [answer for answer in given if answer.reviewer == reviewer]
        status: wire.BlindStatus = "waiting"
    else:
        status = "agreed" if agree(given_answer.answer for given_answer in given) else "disagreed"
    answers = [
        wire.RowAnswer(
            reviewer=given_answer.reviewer,
            at=given_answer.at,
            outcomes=originals.outcomes_now(given_answer.answer.outcomes),
            exclude=given_answer.answer.is_excluded,
        )
        for given_answer in given
    ]
    return wire.BlindRow(status=status, is_yours=reviewer in names, answers=answers)


def summarise(row: Row[Any]) -> wire.DraftSummary:
    """Return a draft as a list has it."""
    return filled(
        wire.DraftSummary, row, sealed=None if row.sealed is None else _decode_sealed(row.sealed)
    )


def log_entry(row: Row[Any]) -> wire.LogEntry:
    """Return an entry of a log as the wire has it."""
    entry = rows.read_entry(row)
    return filled(
        wire.LogEntry,
        entry,
        at=row.at,
        rows=row.rows,
        decision=entry.body.decision,
        outcome=entry.body.outcome,
        note=entry.body.note,
        is_undone=row.undone != rows.HOLDS,
    )
