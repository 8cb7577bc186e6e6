"""Drafts on the wire: a review of one version of a dataset, its edits, its rows, and its seal.

A version never changes. A review is a draft: a log of edits beside a version, which becomes a new
dataset or the next version when it is sealed. Not here: requests that choose rows
(``steelyard.review.requests``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.datasets.wire import MAX_PAGE_ROWS, DatasetName
from steelyard.decisions.wire import Name
from steelyard.wire.queries import MAX_NUMBER, MAX_PAGE, CursorPage, PageQuery, PageSize
from steelyard.wire.schemas import SINGLE_LINE, doc

DraftStatus = Literal["open", "sealed"]
#: What can be done to a row.
EditAction = Literal["relabel", "exclude", "include", "accept", "skip", "note"]
#: What can be done to many rows at once.
BulkAction = Literal["relabel", "exclude", "include", "accept", "skip"]
#: What an entry of the log did.
EntryAction = Literal[
    "relabel", "exclude", "include", "accept", "skip", "note", "outcomes", "undo", "redo"
]
#: How a row stands. Excluded goes before relabelled, and relabelled before the others.
RowState = Literal["untouched", "accepted", "relabelled", "excluded", "skipped"]
#: Which rows of a draft, each queue in its own order.
Queue = Literal[
    "all",
    "to_review",
    "suspect",
    "audit",
    "excluded",
    "noted",
    "changed",
    "mine",
    "assigned",
    "disagreement",
]
SealAs = Literal["dataset", "version"]
#: How a row stands that reviewers label apart.
BlindStatus = Literal["waiting", "agreed", "disagreed"]
SuspectStatus = Literal["ready", "computing", "unavailable"]

#: The most edits of one call, and the most characters of a note and of a reviewer's name.
MAX_EDITS, MAX_NOTE, MAX_REVIEWER = 500, 2000, 254
#: The most rows whose state a receipt tells.
MAX_LISTED_ROWS = MAX_PAGE_ROWS

Reviewer = Annotated[
    Annotated[str, Meta(min_length=1, max_length=MAX_REVIEWER, pattern=SINGLE_LINE)] | None,
    doc(
        "Who edits, as the history names them. Undo and the queues `mine` and `assigned` "
        "go by it; edits without it count as one another's. In a session it is the user's address, "
        "whatever is sent."
    ),
]
_Row = Annotated[
    int, Meta(ge=0, le=MAX_NUMBER, description="The row's place in the dataset, from 0.")
]
_Count = Annotated[int, Meta(ge=0)]
_Entry = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]


class CreateDraft(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A review to begin."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64, description="Id of the dataset.")]
    version: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_NUMBER)] | None, doc("Its version; the latest by default.")
    ] = None
    name: Annotated[DatasetName | None, doc("To find it by; that of the dataset by default.")] = (
        None
    )


class SealedDraft(Struct, frozen=True, kw_only=True):
    """The dataset or version that a draft became."""

    dataset_id: str
    version: int
    sealed_as: Annotated[SealAs, doc("A new dataset, or a next version of its own.")]
    sealed_at: Annotated[float, doc("Unix seconds.")]


class Draft(Struct, frozen=True, kw_only=True):
    """A review of one version; times are Unix seconds."""

    id: str
    dataset_id: str
    dataset_version: int
    name: str
    status: DraftStatus
    revision: Annotated[int, doc("Entries of its log; 0 for none.")]
    rows: Annotated[int, doc("Of the version.")]
    states: Annotated[
        dict[str, int],
        doc(
            "The number of rows in each state. Known rows, whose labels stay, "
            "are untouched; a session of the role reviewer has them as any other."
        ),
    ]
    noted: Annotated[int, doc("Rows with a note.")]
    created_at: float
    updated_at: float
    sealed: SealedDraft | None


class DraftSummary(Struct, frozen=True, kw_only=True):
    """A draft in a list, without the counts that need its whole log."""

    id: str
    dataset_id: str
    dataset_version: int
    name: str
    status: DraftStatus
    revision: int
    rows: int
    created_at: float
    updated_at: float
    sealed: SealedDraft | None


class DraftPage(CursorPage[DraftSummary], frozen=True):
    """Drafts, newest first."""


class DraftsQuery(PageQuery, frozen=True, kw_only=True):
    """Which drafts, and which page of them."""

    dataset_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        doc("Those of one dataset; all by default."),
    ] = None
    status: Annotated[DraftStatus | None, doc("Those that are so; all by default.")] = None


class DeletedDraft(Struct, frozen=True, kw_only=True):
    """A draft that is gone, with its log."""

    id: str
    deleted: Literal[True] = True


class Edit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The edit of one row.

    ``relabel`` takes ``decision`` and one of ``outcome``, ``targets`` and ``rewards``; ``note``
    takes ``note``, which any action may bring. ``include`` undoes ``exclude``; ``accept`` says that
    the labels are right; ``skip`` takes back relabelling and acceptance and decides nothing.
    """

    row: _Row
    action: EditAction
    decision: Annotated[Name | None, doc("The decision to relabel.")] = None
    outcome: Annotated[str | None, doc("The right outcome, where rows have targets.")] = None
    targets: Annotated[
        dict[str, float] | None, doc("Outcome to probability, instead of `outcome`.")
    ] = None
    rewards: Annotated[
        dict[str, float] | None, doc("Every outcome to its reward, where rows have.")
    ] = None
    note: Annotated[
        Annotated[str, Meta(max_length=MAX_NOTE)] | None,
        doc("The row's note from now on; empty removes it."),
    ] = None
    seen: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        doc(
            "`edit` of the row as the reviewer saw it; a newer edit by another refuses "
            "the call with `draft_conflict`."
        ),
    ] = None


class EditRows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Edits, all applied or none; each is an entry of the log."""

    edits: Annotated[list[Edit], Meta(min_length=1, max_length=MAX_EDITS)]
    reviewer: Reviewer = None


class UndoEdit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The author of the last entry to undo, or a range of their entries.

    The entries of one call of edits follow each other and end at its receipt's ``revision``:
    ``first`` and ``last`` name them, so that one call undoes one call.
    """

    reviewer: Reviewer = None
    first: Annotated[
        _Entry | None, doc("The first entry to undo or redo; that of `last` by default.")
    ] = None
    last: Annotated[
        _Entry | None,
        doc(
            "The last entry to undo or redo; by default the reviewer's last that holds, "
            "or what they undid last."
        ),
    ] = None


class SealDraft(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"as_": "as"}
):
    """How to seal a draft."""

    as_: Annotated[
        SealAs,
        doc(
            "`dataset`: a new one. `version`: the next one of its dataset, of which the "
            "draft's version must be the latest."
        ),
    ]
    name: Annotated[DatasetName | None, doc("Of a new dataset; the draft's by default.")] = None
    revision: Annotated[
        _Count | None, doc("Refuse with `draft_changed` when the log is longer.")
    ] = None
    drop_outcomes: Annotated[
        bool, doc("Leave out outcomes that no row has; two of a decision stay.")
    ] = False


class RowNow(Struct, frozen=True, kw_only=True):
    """How a row stands in a draft."""

    row: int
    state: RowState
    labels: Annotated[
        dict[str, dict[str, float]],
        doc("Decision to outcome to target or reward, with what was relabelled."),
    ]
    relabelled: Annotated[list[str], doc("Decisions whose label is another now.")]
    note: str | None
    edit: Annotated[int, doc("Number of the last entry that changed it; 0 for none.")]
    reviewer: Annotated[str | None, doc("Whose entry that was.")]


class EditReceipt(Struct, frozen=True, kw_only=True):
    """The changes of a call."""

    draft_id: str
    edits: Annotated[int, doc("Rows changed.")]
    revision: Annotated[int, doc("Number of the log's last entry.")]
    undone: Annotated[
        int | None,
        doc(
            "The entry that was undone or redone, the last of them where they were "
            "several; else null."
        ),
    ]
    rows: Annotated[list[RowNow], doc(f"The first {MAX_LISTED_ROWS} of them, as they are now.")]


class DraftConflict(Struct, frozen=True, kw_only=True):
    """An entry of the ``details`` of ``draft_conflict``: a row that another edited meanwhile."""

    row: int
    now: RowNow


class LogEntry(Struct, frozen=True, kw_only=True):
    """One entry of a draft's log."""

    number: Annotated[int, doc("From 1.")]
    at: Annotated[float, doc("Unix seconds.")]
    reviewer: str | None
    action: EntryAction
    rows: Annotated[int, doc("How many it changed.")]
    row: Annotated[int | None, doc("The one; null for more.")]
    decision: str | None
    outcome: Annotated[str | None, doc("The outcome that it expects.")]
    note: str | None
    target: Annotated[int | None, doc("What `undo` and `redo` are about.")]
    is_undone: bool


class HistoryQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which entries of a draft's log."""

    row: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_NUMBER)] | None,
        doc("Those about one row; all by default."),
    ] = None
    after: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_NUMBER)] | None,
        doc("`next_after` of the page before: entries older than this one."),
    ] = None
    limit: Annotated[PageSize, doc("Entries of a page.")] = MAX_PAGE


class History(Struct, frozen=True, kw_only=True):
    """Entries of a log, newest first."""

    data: list[LogEntry]
    has_more: bool
    next_after: int | None
    revision: int


class ExpectedOutcome(Struct, frozen=True, kw_only=True):
    """The outcome that models of the other rows predict against a label."""

    outcome: str
    probability: float
    label_probability: Annotated[float, doc("Of the label that the version has.")]


class RowAnswer(Struct, frozen=True, kw_only=True):
    """The answer of one of two reviewers to a row."""

    reviewer: str
    at: Annotated[float, doc("Unix seconds.")]
    outcomes: Annotated[dict[str, str], doc("Decision to outcome.")]
    exclude: Annotated[bool, doc("Whether the row should go; then without outcomes.")]


class BlindRow(Struct, frozen=True, kw_only=True):
    """A row that reviewers label apart: two, or one who does not see its label."""

    status: Annotated[
        BlindStatus,
        doc("While it is `waiting`, an answer is missing, and the draft takes no edit of the row."),
    ]
    is_yours: Annotated[
        bool,
        doc(
            "Whether the reviewer who asks is one of them; while it waits, the row is "
            "shown to them without a label."
        ),
    ]
    answers: Annotated[
        list[RowAnswer], doc("All, once all are there; until then that of the reviewer who asks.")
    ]


class DraftRow(Struct, frozen=True, kw_only=True):
    """A row of a draft: as the version has it, and how it stands now."""

    row: Annotated[int, doc("Its place in the dataset, from 0.")]
    side: Literal["training", "evaluation"]
    context: Any
    decisions: list[Any]
    images: list[Any] | UnsetType = UNSET
    targets: Annotated[dict[str, dict[str, float]] | UnsetType, doc("As the version has them.")] = (
        UNSET
    )
    rewards: Annotated[dict[str, dict[str, float]] | UnsetType, doc("As the version has them.")] = (
        UNSET
    )
    metadata: dict[str, Any] | UnsetType | None = UNSET
    now: RowNow
    blind: Annotated[BlindRow | UnsetType, doc("Of a row that reviewers label apart.")] = UNSET
    known: Annotated[
        Literal[True] | UnsetType,
        doc(
            "Its label is known to be right and scores its reviewers; no answer changes "
            "it. Left out for them, and for sessions of the role reviewer."
        ),
    ] = UNSET
    suspect: Annotated[
        float | None,
        doc(
            "By how much another outcome is likelier than the label of the row's worst "
            "decision, 0 to 1; 0 where no label is suspect, null if unknown."
        ),
    ]
    expected: Annotated[
        dict[str, ExpectedOutcome] | None, doc("Of the decisions whose label is suspect.")
    ]


class Suspects(Struct, frozen=True, kw_only=True):
    """How far the search for suspect labels is; it begins when the queue is first asked for."""

    status: Annotated[SuspectStatus | None, doc("Null while nobody has asked for the queue.")]
    done: Annotated[int, doc("Rows embedded so far, which is most of the work.")]
    rows: int
    method: Annotated[str, doc("What makes a label suspect.")]
    message: Annotated[str | None, doc("Why it is unavailable; else null.")]


class DraftRowPage(Struct, frozen=True, kw_only=True):
    """A page of a queue."""

    data: list[DraftRow]
    queue: Queue
    total: Annotated[int, doc("Rows of the queue that the filter holds for.")]
    offset: int
    limit: int
    has_more: bool
    counts: Annotated[
        dict[str, int],
        doc(
            "Queue to its rows under the filter; `suspect` stands when it is ready, "
            "`mine` when a reviewer is named, and `assigned` and `disagreement` once rows of the "
            "draft were assigned."
        ),
    ]
    revision: Annotated[int, doc("Of the draft, which the page shows.")]
    suspects: Suspects
