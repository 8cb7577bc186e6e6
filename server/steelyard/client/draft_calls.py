"""Calls of the draft routes: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from steelyard.client.calls import Call, encode_body, read, remove, segment, write
from steelyard.datasets.wire import DEFAULT_PAGE_ROWS
from steelyard.review.duties_wire import (
    AnswerReceipt,
    Assignment,
    Assignments,
    DraftAgreement,
    ImportedAnswers,
    MovedAssignment,
)
from steelyard.review.outcomes_wire import DraftOutcomes, OutcomeChange
from steelyard.review.wire import (
    BulkAction,
    DeletedDraft,
    Draft,
    DraftPage,
    DraftRowPage,
    DraftStatus,
    Edit,
    EditReceipt,
    History,
    Queue,
    SealAs,
)
from steelyard.wire.origins import LabelledBy

_PATH = "/v1/drafts"


def create(
    dataset_id: str,
    version: int | None = None,
    name: str | None = None,
    *,
    idempotency_key: str | None = None,
) -> Call[Draft]:
    """Begin a review of a version: ``POST /v1/drafts``.

    Parameters
    ----------
    version : int, optional
        The latest when left out.
    name : str, optional
        To find it by; the dataset's when left out.
    """
    fields = {"dataset_id": dataset_id, "version": version, "name": name}
    return write(_PATH, Draft, fields, key=idempotency_key)


def list_drafts(
    *,
    dataset_id: str | None = None,
    status: DraftStatus | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[DraftPage]:
    """Return a page of drafts, newest first: ``GET /v1/drafts``.

    Parameters
    ----------
    dataset_id : str, optional
        Those of one dataset.
    status : {"open", "sealed"}, optional
        Those that are so.
    """
    query = {"dataset_id": dataset_id, "status": status, "limit": limit, "cursor": cursor}
    return read(_PATH, DraftPage, **query)


def get(draft_id: str) -> Call[Draft]:
    """Return a draft with the states of its rows counted: ``GET /v1/drafts/{draft}``."""
    return read(_path(draft_id), Draft)


def delete(draft_id: str) -> Call[DeletedDraft]:
    """Delete a draft and its log; datasets stay as they are: ``DELETE /v1/drafts/{draft}``."""
    return remove(_path(draft_id), DeletedDraft)


def edit(
    draft_id: str,
    edits: Sequence[Mapping[str, Any] | Edit],
    reviewer: str | None = None,
    *,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Edit rows, all of the edits or none: ``POST /v1/drafts/{draft}/edits``.

    Parameters
    ----------
    edits : sequence of mapping or Edit
        Such as ``{"row": 4, "action": "relabel", "decision": "team", "outcome": "billing"}``. With
        ``seen``, the ``edit`` of the row as it was shown, another's newer edit is not overwritten.
    reviewer : str, optional
        Who edits.

    Raises
    ------
    steelyard.errors.DraftConflictError
        When another edited a row since it was seen; ``details`` has each such row and how it
        stands now, and nothing was applied.
    """
    fields = {"edits": [_edit(change) for change in edits], "reviewer": reviewer}
    return write(f"{_path(draft_id)}/edits", EditReceipt, fields, key=idempotency_key)


def bulk(
    draft_id: str,
    action: BulkAction,
    expected: int,
    *,
    where: Mapping[str, Any] | None = None,
    text: str | None = None,
    queue: Queue = "all",
    decision: str | None = None,
    outcome: str | None = None,
    revision: int | None = None,
    reviewer: str | None = None,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Edit every row of a queue that a filter holds for: ``POST /v1/drafts/{draft}/bulk``.

    Parameters
    ----------
    action : {"relabel", "exclude", "include", "accept", "skip"}
        The change to every row: one entry of the log, and one undo.
    expected : int
        How many rows the person confirmed: ``total`` of the page of the same queue and filter.
    where : mapping, optional
        A filter, as ``datasets.search`` takes it, over the rows as the version has them.
    text : str, optional
        Words that the context has.
    queue : str, default "all"
        Which queue.
    decision, outcome : str, optional
        Of ``relabel``.
    revision : int, optional
        The draft's revision that was seen: rows that another edited since refuse the call.
    reviewer : str, optional
        Who edits.

    Raises
    ------
    steelyard.errors.DraftChangedError
        When other rows match by now; nothing was applied.
    """
    fields = {
        "action": action,
        "expected": expected,
        "filter": where,
        "text": text,
        "queue": queue,
        "decision": decision,
        "outcome": outcome,
        "revision": revision,
        "reviewer": reviewer,
    }
    return write(f"{_path(draft_id)}/bulk", EditReceipt, fields, key=idempotency_key)


def outcomes(draft_id: str) -> Call[DraftOutcomes]:
    """Return the outcomes of a draft's decisions, with their rows: ``GET …/{draft}/outcomes``."""
    return read(f"{_path(draft_id)}/outcomes", DraftOutcomes)


def edit_outcomes(
    draft_id: str,
    decision: str,
    outcomes: Mapping[str, Mapping[str, Any] | OutcomeChange],
    reviewer: str | None = None,
    *,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Name, describe and merge the outcomes of a decision: ``POST …/{draft}/outcomes``.

    This replaces an earlier mapping of the decision's outcomes, as one entry of the log.

    Parameters
    ----------
    decision : str
        Id of the decision.
    outcomes : mapping
        Outcome, as the version names it, to its new form: ``{"BILLING": {"same_as":
        "billing"}, "billing": {"name": "Billing", "description": "Money already taken"}}``. Outcomes
        that are left out stay; an empty mapping restores all of them.
    reviewer : str, optional
        Who edits.
    """
    fields = {"decision": decision, "outcomes": dict(outcomes), "reviewer": reviewer}
    return write(f"{_path(draft_id)}/outcomes", EditReceipt, fields, key=idempotency_key)


def undo(
    draft_id: str,
    reviewer: str | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Undo the reviewer's own last entry, or those named: ``POST /v1/drafts/{draft}/undo``.

    Parameters
    ----------
    reviewer : str, optional
        Whose; the last of those without a name when left out.
    first, last : int, optional
        The entries from one number to another, of which those that hold are undone, whatever came
        after them. All of one call of ``n`` edits are ``revision - n + 1`` to ``revision`` of its
        receipt. ``last`` alone names one entry.

    Raises
    ------
    steelyard.errors.NothingToUndoError
        When the reviewer has no entry left to undo, or none of those named holds.
    """
    fields = {"reviewer": reviewer, "first": first, "last": last}
    return write(f"{_path(draft_id)}/undo", EditReceipt, fields, key=idempotency_key)


def redo(
    draft_id: str,
    reviewer: str | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Redo the edit the reviewer undid last, or entries named as for ``undo``: ``POST …/{draft}/redo``.

    Raises
    ------
    steelyard.errors.NothingToUndoError
        When nothing is undone, or the reviewer has edited since.
    """
    fields = {"reviewer": reviewer, "first": first, "last": last}
    return write(f"{_path(draft_id)}/redo", EditReceipt, fields, key=idempotency_key)


def history(
    draft_id: str, *, row: int | None = None, after: int | None = None, limit: int | None = None
) -> Call[History]:
    """Return the log, newest first: ``GET /v1/drafts/{draft}/edits``.

    Parameters
    ----------
    row : int, optional
        Entries about this row alone.
    after : int, optional
        The page before's ``next_after``.
    """
    return read(f"{_path(draft_id)}/edits", History, row=row, after=after, limit=limit)


def rows(
    draft_id: str,
    queue: Queue = "all",
    *,
    where: Mapping[str, Any] | None = None,
    text: str | None = None,
    order: Mapping[str, Any] | None = None,
    offset: int = 0,
    limit: int = DEFAULT_PAGE_ROWS,
    reviewer: str | None = None,
) -> Call[DraftRowPage]:
    """Return a page of a queue, with every queue counted: ``POST /v1/drafts/{draft}/rows``.

    Parameters
    ----------
    queue : str, default "all"
        ``all``, ``to_review`` (undecided rows, skipped ones last), ``suspect``
        (undecided rows whose label models of the other rows contradict, the worst first), ``audit`` (a
        random sample), ``excluded``, ``noted``, ``changed`` (relabelled or excluded), ``mine``
        (rows that ``reviewer`` edited last), ``assigned`` (rows for ``reviewer`` to label), or
        ``disagreement`` (undecided rows of which two said different things).
    where : mapping, optional
        A filter, as ``datasets.search`` takes it, over the rows as the version has them.
    text : str, optional
        Words that the context has.
    order : mapping, optional
        Such as ``{"by": "context_characters"}``; the queue's own when left out.
    reviewer : str, optional
        Who asks: of the queues ``mine`` and ``assigned``.
    """
    fields = {
        "queue": queue,
        "filter": where,
        "text": text,
        "sort": order,
        "offset": offset,
        "limit": limit,
        "reviewer": reviewer,
    }
    return Call("POST", f"{_path(draft_id)}/rows", DraftRowPage, encode_body(fields))


def assign(
    draft_id: str,
    reviewers: Sequence[str],
    *,
    overlap: float = 0,
    where: Mapping[str, Any] | None = None,
    text: str | None = None,
    queue: Queue = "to_review",
    limit: int | None = None,
    reviewer: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Assignment]:
    """Split undecided rows evenly among reviewers: ``POST /v1/drafts/{draft}/assignments``.

    Rows that are assigned already are left out.

    Parameters
    ----------
    reviewers : sequence of str
        Who labels; in a session, addresses of members of the account.
    overlap : float, default 0
        The share of the rows, drawn at random, that two reviewers label apart: see ``answer``.
    where : mapping, optional
        A filter, as ``datasets.search`` takes it, over the rows as the version has them.
    text : str, optional
        Words that the context has.
    queue : str, default "to_review"
        Which queue.
    limit : int, optional
        The most rows, drawn at random.
    reviewer : str, optional
        Who asks: of the queue ``mine``.
    """
    fields = {
        "reviewers": list(reviewers),
        "overlap": overlap,
        "filter": where,
        "text": text,
        "queue": queue,
        "limit": limit,
        "reviewer": reviewer,
    }
    return write(f"{_path(draft_id)}/assignments", Assignment, fields, key=idempotency_key)


def assignments(draft_id: str) -> Call[Assignments]:
    """Return whose rows are whose, and how far each is: ``GET /v1/drafts/{draft}/assignments``."""
    return read(f"{_path(draft_id)}/assignments", Assignments)


def move_assigned(
    draft_id: str, from_: str, to: str | None = None, *, idempotency_key: str | None = None
) -> Call[MovedAssignment]:
    """Move a reviewer's unfinished rows to another: ``POST …/{draft}/assignments/move``.

    Parameters
    ----------
    from_ : str
        Who has the rows.
    to : str, optional
        The new reviewer; none when left out.
    """
    fields = {"from": from_, "to": to}
    path = f"{_path(draft_id)}/assignments/move"
    return write(path, MovedAssignment, fields, key=idempotency_key)


def answer(
    draft_id: str,
    row: int,
    outcomes: Mapping[str, str] | None = None,
    *,
    exclude: bool = False,
    reviewer: str | None = None,
    idempotency_key: str | None = None,
) -> Call[AnswerReceipt]:
    """Answer a row that several people label: ``POST /v1/drafts/{draft}/answers``.

    Neither sees the other's answer. A label on which both agree becomes the row's; otherwise the
    row comes into the queue ``disagreement``, to be decided by an ordinary edit.

    Parameters
    ----------
    outcomes : mapping, optional
        Every decision of the row to its outcome.
    exclude : bool, default False
        The row should go; then without outcomes.
    reviewer : str, optional
        Who answers; in a session it is the user.
    """
    fields = {
        "row": row,
        "outcomes": None if outcomes is None else dict(outcomes),
        "exclude": exclude,
        "reviewer": reviewer,
    }
    return write(f"{_path(draft_id)}/answers", AnswerReceipt, fields, key=idempotency_key)


def import_answers(
    draft_id: str,
    answers: Sequence[Mapping[str, Any]],
    *,
    idempotency_key: str | None = None,
) -> Call[ImportedAnswers]:
    """Record answers that people gave elsewhere: ``POST /v1/drafts/{draft}/answers/import``.

    A row of one person is labelled in their name. Answers of several are kept apart, as those of
    ``answer``: a label on which all agree becomes the row's, and a row on which they differ comes into the
    queue ``disagreement``.

    Parameters
    ----------
    answers : sequence of mapping
        Such as ``{"row": 4, "reviewer": "ann", "outcomes": {"team": "billing"}, "note": "sure"}``, or
        with ``"exclude": True``; all answers to a row in one call, of at most 500.

    Raises
    ------
    steelyard.errors.DraftChangedError
        When a row was assigned or edited already; nothing was recorded.
    """
    path = f"{_path(draft_id)}/answers/import"
    return write(path, ImportedAnswers, {"answers": list(answers)}, key=idempotency_key)


def agreement(
    draft_id: str, *, by: LabelledBy | None = None, who: str | None = None
) -> Call[DraftAgreement]:
    """Return how far two reviewers agree, by decision: ``GET /v1/drafts/{draft}/agreement``.

    Krippendorff's alpha and the share of rows on which both agree, each with an interval.

    Parameters
    ----------
    by : {"person", "expert", "outcome", "click", "model", "unknown"}, optional
        Of rows whose labels in the version came from there alone.
    who : str, optional
        Of rows that this reviewer answered alone.
    """
    return read(f"{_path(draft_id)}/agreement", DraftAgreement, by=by, who=who)


def seal(
    draft_id: str,
    as_: SealAs,
    name: str | None = None,
    *,
    revision: int | None = None,
    drop_outcomes: bool = False,
    idempotency_key: str | None = None,
) -> Call[Draft]:
    """Make a draft a new dataset or the next version: ``POST /v1/drafts/{draft}/seal``.

    Parameters
    ----------
    as_ : {"dataset", "version"}
        The target; ``sealed`` of the answer says which dataset and version that is.
    name : str, optional
        Of a new dataset; the draft's when left out.
    revision : int, optional
        The draft's revision that was seen: a longer log refuses the call.
    drop_outcomes : bool, default False
        Leave out outcomes that no row has; two of a decision stay.
    """
    fields = {"as": as_, "name": name, "revision": revision, "drop_outcomes": drop_outcomes or None}
    return write(f"{_path(draft_id)}/seal", Draft, fields, key=idempotency_key)


def _path(draft_id: str) -> str:
    return f"{_PATH}/{segment(draft_id)}"


def _edit(edit: Mapping[str, Any] | Edit) -> dict[str, Any]:
    fields = structs.asdict(edit) if isinstance(edit, Edit) else edit
    return {name: value for name, value in fields.items() if value is not None}
