"""Calls of the draft routes: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from steelyard.client.calls import Call
from steelyard.client.routes import if_true, listed, route
from steelyard.datasets.wire import DEFAULT_PAGE_ROWS
from steelyard.review.duties_wire import (
    AnswerReceipt,
    Assignment,
    Assignments,
    DraftAgreement,
    ImportedAnswers,
    MovedAssignment,
    PeopleAgreement,
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


def _edits(edits: Sequence[Mapping[str, Any] | Edit]) -> list[dict[str, Any]]:
    fields = (structs.asdict(edit) if isinstance(edit, Edit) else edit for edit in edits)
    return [{name: value for name, value in edit.items() if value is not None} for edit in fields]


def _changes(outcomes: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if outcomes is None else dict(outcomes)


@route("POST /v1/drafts", Draft)
def create(
    dataset_id: str,
    version: int | None = None,
    name: str | None = None,
    *,
    idempotency_key: str | None = None,
) -> Call[Draft]:
    """Begin a review of a version, the latest when left out: ``POST /v1/drafts``."""


@route("GET /v1/drafts", DraftPage)
def list_drafts(
    *,
    dataset_id: str | None = None,
    status: DraftStatus | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[DraftPage]:
    """Return a page of drafts, newest first: ``GET /v1/drafts``."""


@route("GET /v1/drafts/{draft_id}", Draft)
def get(draft_id: str) -> Call[Draft]:
    """Return a draft with the states of its rows counted: ``GET /v1/drafts/{draft}``."""


@route("DELETE /v1/drafts/{draft_id}", DeletedDraft)
def delete(draft_id: str) -> Call[DeletedDraft]:
    """Delete a draft and its log; datasets stay as they are: ``DELETE /v1/drafts/{draft}``."""


@route("POST /v1/drafts/{draft_id}/edits", EditReceipt, edits=_edits)
def edit(
    draft_id: str,
    edits: Sequence[Mapping[str, Any] | Edit],
    reviewer: str | None = None,
    *,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Edit rows, all of the edits or none: ``POST /v1/drafts/{draft}/edits``.

    An edit is ``{"row": 4, "action": "relabel", "decision": "team", "outcome": "billing"}``. With
    ``seen``, the ``edit`` of the row as it was shown, another's newer edit is not overwritten.

    Raises
    ------
    steelyard.errors.DraftConflictError
        When another edited a row since it was seen; ``details`` has each such row as it stands now.
    """


@route("POST /v1/drafts/{draft_id}/bulk", EditReceipt, where="filter")
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

    It is one entry of the log, and one undo.

    Parameters
    ----------
    expected
        How many rows the person confirmed: ``total`` of the page of the same queue and filter.
    where, text
        A filter, as ``datasets.search`` takes it, over the rows as the version has them; and words
        that the context has.
    decision, outcome
        Of ``relabel``.
    revision
        The draft's revision that was seen: rows that another edited since refuse the call.

    Raises
    ------
    steelyard.errors.DraftChangedError
        When other rows match by now; nothing was applied.
    """


@route("GET /v1/drafts/{draft_id}/outcomes", DraftOutcomes)
def outcomes(draft_id: str) -> Call[DraftOutcomes]:
    """Return the outcomes of a draft's decisions, with their rows: ``GET …/{draft}/outcomes``."""


@route("POST /v1/drafts/{draft_id}/outcomes", EditReceipt, outcomes=_changes)
def edit_outcomes(
    draft_id: str,
    decision: str,
    outcomes: Mapping[str, Mapping[str, Any] | OutcomeChange] | None = None,
    reviewer: str | None = None,
    *,
    guideline: str | None = None,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Name, describe and merge the outcomes of a decision: ``POST …/{draft}/outcomes``.

    This replaces an earlier mapping of the decision's outcomes, as one entry of the log.
    ``outcomes`` maps an outcome, as the version names it, to its new form, such as
    ``{"BILLING": {"same_as": "billing"}, "billing": {"description": "Money already taken"}}``.
    Outcomes that are left out stay; an empty mapping restores all of them. ``guideline`` is that of
    all rows that ask the decision, the sealed draft carries it; an empty text removes it.
    """


@route("POST /v1/drafts/{draft_id}/undo", EditReceipt)
def undo(
    draft_id: str,
    reviewer: str | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Undo the reviewer's own last entry, or those named: ``POST /v1/drafts/{draft}/undo``.

    From entry ``first`` to ``last`` (``last`` alone names one), those that hold are undone,
    whatever came after them. All of one call of ``n`` edits are ``revision - n + 1`` to
    ``revision`` of its receipt.

    Raises
    ------
    steelyard.errors.NothingToUndoError
        When the reviewer has no entry left to undo, or none of those named holds.
    """


@route("POST /v1/drafts/{draft_id}/redo", EditReceipt)
def redo(
    draft_id: str,
    reviewer: str | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    idempotency_key: str | None = None,
) -> Call[EditReceipt]:
    """Redo the edit the reviewer undid last, or entries named as for ``undo``: ``POST …/redo``.

    Raise ``NothingToUndoError`` when nothing is undone, or the reviewer has edited since.
    """


@route("GET /v1/drafts/{draft_id}/edits", History)
def history(
    draft_id: str, *, row: int | None = None, after: int | None = None, limit: int | None = None
) -> Call[History]:
    """Return the log, of one row or all, newest first: ``GET /v1/drafts/{draft}/edits``.

    ``after`` is the page before's ``next_after``.
    """


@route(
    "POST /v1/drafts/{draft_id}/rows", DraftRowPage, is_question=True, where="filter", order="sort"
)
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
    queue
        ``all``, ``to_review`` (undecided rows, skipped ones last), ``suspect`` (undecided rows
        whose label models of the other rows contradict, the worst first), ``audit`` (a random
        sample), ``excluded``, ``noted``, ``changed`` (relabelled or excluded), ``mine`` (rows that
        ``reviewer`` edited last), ``assigned`` (rows for ``reviewer`` to label), or
        ``disagreement`` (undecided rows of which two said different things).
    where, text
        As for ``bulk``.
    order
        Such as ``{"by": "context_characters"}``; the queue's own when left out.
    """


@route("POST /v1/drafts/{draft_id}/assignments", Assignment, reviewers=listed, where="filter")
def assign(
    draft_id: str,
    reviewers: Sequence[str],
    *,
    overlap: float = 0,
    known_share: float | None = None,
    known_by: LabelledBy | None = None,
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
    reviewers
        Who labels; in a session, addresses of members of the account.
    overlap
        The share of the rows, drawn at random, that two reviewers label apart: see ``answer``.
    known_share, known_by
        The share of the rows whose labels are known: by an expert, or another ``by`` of metadata. Mixed in, they
        score their reviewers (``known`` of ``assignments``) and keep their labels. All rows of the
        call are then labelled apart, also those of one reviewer.
    where, text
        As for ``bulk``.
    limit
        The most rows, drawn at random.
    reviewer
        Who asks: of the queue ``mine``.
    """


@route("GET /v1/drafts/{draft_id}/assignments", Assignments)
def assignments(draft_id: str) -> Call[Assignments]:
    """Return whose rows are whose, and how far each is: ``GET /v1/drafts/{draft}/assignments``."""


@route("POST /v1/drafts/{draft_id}/assignments/move", MovedAssignment, from_="from")
def move_assigned(
    draft_id: str, from_: str, to: str | None = None, *, idempotency_key: str | None = None
) -> Call[MovedAssignment]:
    """Move a reviewer's unfinished rows to another: ``POST …/{draft}/assignments/move``."""


@route("POST /v1/drafts/{draft_id}/answers", AnswerReceipt)
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
    row comes into the queue ``disagreement``, to be decided by an ordinary edit. ``outcomes`` has
    every decision of the row, or is left out with ``exclude``: the row should go. In a session the
    reviewer is the user.
    """


@route("POST /v1/drafts/{draft_id}/answers/import", ImportedAnswers, answers=listed)
def import_answers(
    draft_id: str,
    answers: Sequence[Mapping[str, Any]],
    *,
    idempotency_key: str | None = None,
) -> Call[ImportedAnswers]:
    """Record answers that people gave elsewhere: ``POST /v1/drafts/{draft}/answers/import``.

    A row of one person is labelled in their name. Answers of several are kept apart, as those of
    ``answer``. Such as
    ``{"row": 4, "reviewer": "ann", "outcomes": {"team": "billing"}, "note": "sure"}``, or with
    ``"exclude": True``; all answers to a row in one call, of at most 500.

    Raises
    ------
    steelyard.errors.DraftChangedError
        When a row was assigned or edited already; nothing was recorded.
    """


@route("GET /v1/drafts/{draft_id}/agreement", DraftAgreement)
def agreement(
    draft_id: str, *, by: LabelledBy | None = None, who: str | None = None
) -> Call[DraftAgreement]:
    """Return how far two reviewers agree, by decision: ``GET /v1/drafts/{draft}/agreement``.

    Krippendorff's alpha and the share of rows on which both agree, each with an interval; of rows
    whose labels in the version came from ``by`` alone, or that the reviewer ``who`` answered.
    """


@route("GET /v1/drafts/agreement", PeopleAgreement)
def people_agreement(dataset_id: str, version: int | None = None) -> Call[PeopleAgreement]:
    """Return how far people agree on a version, the latest when left out: ``GET /v1/drafts/agreement``.

    By the rows that two or more labelled apart, in drafts of it and of the versions before it.
    """


@route("POST /v1/drafts/{draft_id}/seal", Draft, as_="as", drop_outcomes=if_true)
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

    ``sealed`` of the answer says which dataset and version that is. ``name`` is that of a new
    dataset, the draft's when left out. A log longer than the ``revision`` that was seen refuses the
    call. ``drop_outcomes`` leaves out outcomes that no row has; two of a decision stay.
    """
