"""Requests about many rows of a draft: the rows, and their edit."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from steelyard.datasets.filters import (
    Filter,
    Sort,
    read_filter,
    read_filtered,
    read_sort,
    with_words,
)
from steelyard.datasets.wire import DEFAULT_PAGE_ROWS, MAX_PAGE_ROWS
from steelyard.decisions.wire import Name
from steelyard.review import wire
from steelyard.review.duties_wire import MAX_REVIEWERS
from steelyard.wire.decoding import convert
from steelyard.wire.origins import LabelledBy
from steelyard.wire.payloads import open_payload, read_payload
from steelyard.wire.queries import MAX_NUMBER
from steelyard.wire.schemas import SINGLE_LINE, doc
from steelyard.wire.violations import BODY, Violations, refusal

#: The largest share of assigned rows that are known.
MAX_KNOWN_SHARE = 0.5
_Text = Annotated[str, Meta(min_length=1, max_length=256)]
_Name = Annotated[str, Meta(min_length=1, max_length=wire.MAX_REVIEWER, pattern=SINGLE_LINE)]
_Note = Annotated[str, Meta(min_length=1, max_length=wire.MAX_NOTE)]
_Count = Annotated[int, Meta(ge=0)]
_OF_FILTER = doc("Over the rows as the version has them; all when left out.")
_OF_TEXT = doc("Rows with all of its words in the context alone.")


class Narrowed:
    """A request about the rows of a queue that a filter and words in the context hold for."""

    __slots__ = ()

    filter: Filter | None
    text: str | None

    @property
    def where(self) -> Filter | None:
        """The filter of ``filter`` and ``text`` together."""
        return with_words(self.filter, self.text)


class DraftRowsSearch(Narrowed, Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of which queue."""

    queue: wire.Queue = "all"
    filter: Annotated[Filter | None, _OF_FILTER] = None
    text: Annotated[_Text | None, _OF_TEXT] = None
    sort: Annotated[Sort | None, doc("The queue's own order when left out.")] = None
    offset: _Count = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ROWS)] = DEFAULT_PAGE_ROWS
    reviewer: wire.Reviewer = None


class BulkEdit(Narrowed, Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An edit to every row of a filtered queue: one entry of the log."""

    action: wire.BulkAction
    expected: Annotated[
        int, Meta(ge=0, description="How many rows the person confirmed; others refuse the call.")
    ]
    filter: Annotated[Filter | None, _OF_FILTER] = None
    text: Annotated[_Text | None, _OF_TEXT] = None
    queue: wire.Queue = "all"
    decision: Annotated[Name | None, doc("Of `relabel`.")] = None
    outcome: Annotated[str | None, doc("Of `relabel`.")] = None
    revision: Annotated[
        _Count | None, doc("The revision that was seen: rows that another edited since refuse.")
    ] = None
    reviewer: wire.Reviewer = None


class AnswerRow(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A reviewer's answer to a row that another labels too; the later answer counts."""

    row: Annotated[
        int, Meta(ge=0, le=MAX_NUMBER, description="The row's place in the dataset, from 0.")
    ]
    outcomes: Annotated[
        dict[str, str] | None, doc("Every decision of the row to its outcome; or `exclude`.")
    ] = None
    exclude: Annotated[bool, doc("The row should go.")] = False
    reviewer: wire.Reviewer = None


class ImportedAnswer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An answer from another program: outcomes, that the row should go, or a note."""

    row: Annotated[
        int, Meta(ge=0, le=MAX_NUMBER, description="The row's place in the dataset, from 0.")
    ]
    reviewer: Annotated[_Name | None, doc("Who; once a row.")] = None
    outcomes: Annotated[dict[str, str], doc("Decision to outcome; those that were answered.")] = {}
    exclude: Annotated[bool, doc("The row should go; then without outcomes.")] = False
    note: Annotated[_Note | None, doc("What was written beside it.")] = None

    @property
    def is_vote(self) -> bool:
        """Whether it labels the row, and is more than a note."""
        return self.exclude or bool(self.outcomes)


class ImportAnswers(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Answers that were given elsewhere; all that are about one row come in one call."""

    answers: Annotated[list[ImportedAnswer], Meta(min_length=1, max_length=wire.MAX_EDITS)]


class AssignRows(Narrowed, Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Reviewers for the unassigned rows of a filtered queue."""

    reviewers: Annotated[
        list[_Name],
        Meta(
            min_length=1,
            max_length=MAX_REVIEWERS,
            description="Who labels, each about as many rows. In a session these are addresses of "
            "members of the account.",
        ),
    ]
    overlap: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="The share of the rows, drawn at random, that two reviewers label apart, "
            "neither seeing what the other says.",
        ),
    ] = 0
    known_share: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_KNOWN_SHARE,
            description="The share of the assigned rows whose labels are known: mixed in at random, "
            "they score their reviewers and keep their labels. Reviewers then see no labels of any "
            "assigned row, so that none stands out.",
        ),
    ] = 0
    known_by: Annotated[
        LabelledBy,
        doc(
            "Known are matching rows whose labels in the version came from there, by "
            "`by` of metadata; those that are not mixed in are left out."
        ),
    ] = "expert"
    filter: Annotated[Filter | None, _OF_FILTER] = None
    text: Annotated[_Text | None, _OF_TEXT] = None
    queue: wire.Queue = "to_review"
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_NUMBER)] | None,
        doc("The most rows, drawn at random; all by default."),
    ] = None
    reviewer: wire.Reviewer = None


class MoveAssigned(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}
):
    """A move of unfinished rows from one reviewer to another."""

    from_: Annotated[_Name, doc("Who has them.")]
    to: Annotated[_Name | None, doc("Who gets them; nobody by default.")] = None


def read_rows_search(payload: object) -> DraftRowsSearch:
    """Read which page is asked for, or refuse it with everything that is wrong in it."""
    readers = {"filter": read_filter, "sort": read_sort}
    return read_filtered(payload, DraftRowsSearch, readers, _check_queue)


def read_bulk(payload: object) -> BulkEdit:
    """Read an edit of many rows; as ``read_rows_search``."""
    return read_filtered(payload, BulkEdit, {"filter": read_filter}, _check_bulk)


def read_edits(payload: object) -> wire.EditRows:
    """Read edits of rows; as ``read_rows_search``."""
    violations = Violations()
    fields = open_payload(payload, wire.EditRows, violations)
    edits = fields.get("edits")
    for index, edit in enumerate(edits if isinstance(edits, list) else ()):
        if isinstance(edit, dict):
            _check_edit(edit, (*BODY, "edits", index), violations)
    violations.raise_if_any()
    return convert(fields, wire.EditRows)


def read_create(payload: object) -> wire.CreateDraft:
    """Read which version is to be reviewed; as ``read_rows_search``."""
    violations = Violations()
    fields = open_payload(payload, wire.CreateDraft, violations)
    name = fields.get("name")
    if isinstance(name, str) and name and not name.strip():
        violations.add((*BODY, "name"), "is blank; name the draft, or leave it out.", "blank")
    violations.raise_if_any()
    return convert(fields, wire.CreateDraft)


def read_undo(payload: object) -> wire.UndoEdit:
    """Read the edits to undo or redo; as ``read_rows_search``."""
    request = read_payload(payload, wire.UndoEdit)
    first, last = request.first, request.last
    if first is not None and (last is None or not first <= last < first + wire.MAX_EDITS):
        raise refusal(
            (*BODY, "first"),
            f"must be at most `last`, and fewer than {wire.MAX_EDITS} before it; give both, as the "
            "receipt of one call of edits has them.",
            "conflict",
        )
    return request


def read_seal(payload: object) -> wire.SealDraft:
    """Read how to seal a draft; as ``read_rows_search``."""
    violations = Violations()
    fields = open_payload(payload, wire.SealDraft, violations)
    name = fields.get("name")
    if fields.get("as") == "version" and name is not None:
        violations.add(
            (*BODY, "name"), "is of a new dataset; leave it out for a version.", "refused"
        )
    elif isinstance(name, str) and name and not name.strip():
        violations.add((*BODY, "name"), "is blank; name the dataset, or leave it out.", "blank")
    violations.raise_if_any()
    return convert(fields, wire.SealDraft)


def read_assign(payload: object) -> AssignRows:
    """Read the reviewers of rows; as ``read_rows_search``."""
    return read_filtered(payload, AssignRows, {"filter": read_filter}, _check_assign)


def read_answer(payload: object) -> AnswerRow:
    """Read a reviewer's answer; as ``read_rows_search``."""
    violations = Violations()
    fields = open_payload(payload, AnswerRow, violations)
    outcomes, is_excluded = fields.get("outcomes"), fields.get("exclude") is True
    if is_excluded and outcomes:
        violations.add(
            (*BODY, "outcomes"), "is given beside exclude; give one of the two.", "refused"
        )
    elif not is_excluded and not outcomes:
        violations.add(
            (*BODY, "outcomes"),
            "is missing; give an outcome for every decision of the row, or exclude.",
            "missing",
        )
    violations.raise_if_any()
    return convert(fields, AnswerRow)


def read_import(payload: object) -> ImportAnswers:
    """Read answers that were given elsewhere; as ``read_rows_search``."""
    request = read_payload(payload, ImportAnswers)
    violations = Violations()
    seen: set[tuple[int, str | None]] = set()
    votes: dict[int, list[ImportedAnswer]] = {}
    for number, answer in enumerate(request.answers):
        path = (*BODY, "answers", number)
        if (answer.row, answer.reviewer) in seen:
            violations.add(
                (*path, "reviewer"),
                f"answered row {answer.row} twice; give one answer of each.",
                "duplicate",
            )
        seen.add((answer.row, answer.reviewer))
        if answer.exclude and answer.outcomes:
            violations.add(
                (*path, "outcomes"), "is given beside exclude; give one of the two.", "refused"
            )
        elif not (answer.is_vote or answer.note):
            violations.add(
                (*path, "outcomes"), "is missing; give outcomes, exclude or a note.", "missing"
            )
        if answer.is_vote:
            votes.setdefault(answer.row, []).append(answer)
    for row, given in votes.items():
        if len(given) > MAX_REVIEWERS or (
            len(given) > 1 and any(answer.reviewer is None for answer in given)
        ):
            violations.add(
                (*BODY, "answers"),
                f"has {len(given)} answers to row {row}; give each the name of its reviewer, and at "
                f"most {MAX_REVIEWERS} a row.",
                "refused",
            )
    violations.raise_if_any()
    return request


def _check_assign(fields: dict[str, Any], violations: Violations) -> None:
    names = fields.get("reviewers")
    if isinstance(names, list):
        for place, name in enumerate(names):
            if name in names[:place]:
                violations.add(
                    (*BODY, "reviewers", place), "is named twice; name it once.", "duplicate"
                )
        if len(names) < _TWO and fields.get("overlap"):
            violations.add(
                (*BODY, "overlap"), "needs two reviewers; name another, or leave it out.", "refused"
            )
    _check_queue(fields, violations)


def _check_queue(fields: dict[str, Any], violations: Violations) -> None:
    queue = fields.get("queue")
    if queue in ("mine", "assigned") and fields.get("reviewer") is None:
        violations.add((*BODY, "reviewer"), f"is missing; the queue {queue} needs it.", "missing")


def _check_bulk(fields: dict[str, Any], violations: Violations) -> None:
    for name in ("decision", "outcome"):
        if fields.get("action") == "relabel" and fields.get(name) is None:
            violations.add((*BODY, name), "is missing; relabelling needs it.", "missing")
        elif fields.get("action") != "relabel" and fields.get(name) is not None:
            violations.add(
                (*BODY, name), "goes with the action relabel alone; remove it.", "refused"
            )
    _check_queue(fields, violations)


_TWO = 2
_LABELS = ("outcome", "targets", "rewards")


def _check_edit(edit: dict[str, Any], path: tuple[str | int, ...], violations: Violations) -> None:
    action = edit.get("action")
    given = [name for name in _LABELS if edit.get(name) is not None]
    if action == "relabel":
        if edit.get("decision") is None:
            violations.add((*path, "decision"), "is missing; relabelling needs it.", "missing")
        if not given:
            violations.add(
                (*path, "outcome"), "is missing; give outcome, targets or rewards.", "missing"
            )
        for name in given[1:]:
            violations.add(
                (*path, name), f"is given beside {given[0]}; give one of them.", "refused"
            )
    else:
        for name in ("decision", *given):
            if edit.get(name) is not None:
                violations.add(
                    (*path, name), "goes with the action relabel alone; remove it.", "refused"
                )
    if action == "note" and edit.get("note") is None:
        violations.add((*path, "note"), "is missing; the action note needs it.", "missing")
