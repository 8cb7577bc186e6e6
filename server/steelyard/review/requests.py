"""Requests about many rows of a draft: which rows, and what they get."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
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
from steelyard.review.wire import (
    MAX_EDITS,
    BulkAction,
    CreateDraft,
    EditRows,
    Queue,
    Reviewer,
    SealDraft,
    UndoEdit,
)
from steelyard.wire.payloads import open_payload, read_payload
from steelyard.wire.violations import BODY, Violations

_Text = Annotated[str, Meta(min_length=1, max_length=256)]
_Count = Annotated[int, Meta(ge=0)]
_OF_FILTER = Meta(description="Over the rows as the version has them; all when left out.")
_OF_TEXT = Meta(description="Rows with all of its words in the context alone.")


class DraftRowsSearch(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of which queue."""

    queue: Queue = "all"
    filter: Annotated[Filter | None, _OF_FILTER] = None
    text: Annotated[_Text | None, _OF_TEXT] = None
    sort: Annotated[Sort | None, Meta(description="The queue's own order when left out.")] = None
    offset: _Count = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ROWS)] = DEFAULT_PAGE_ROWS
    reviewer: Reviewer = None

    @property
    def where(self) -> Filter | None:
        """What ``filter`` and ``text`` ask for together."""
        return with_words(self.filter, self.text)


class BulkEdit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every row of a queue gets that a filter holds for: one entry of the log."""

    action: BulkAction
    expected: Annotated[
        int, Meta(ge=0, description="How many rows the person confirmed; others refuse the call.")
    ]
    filter: Annotated[Filter | None, _OF_FILTER] = None
    text: Annotated[_Text | None, _OF_TEXT] = None
    queue: Queue = "all"
    decision: Annotated[Name | None, Meta(description="Of `relabel`.")] = None
    outcome: Annotated[str | None, Meta(description="Of `relabel`.")] = None
    revision: Annotated[
        _Count | None,
        Meta(description="The revision that was seen: rows that another edited since refuse."),
    ] = None
    reviewer: Reviewer = None

    @property
    def where(self) -> Filter | None:
        """What ``filter`` and ``text`` ask for together."""
        return with_words(self.filter, self.text)


def read_rows_search(payload: object) -> DraftRowsSearch:
    """Read which page is asked for, or refuse it with everything that is wrong in it."""
    readers = {"filter": read_filter, "sort": read_sort}
    return read_filtered(payload, DraftRowsSearch, readers, _check_queue)


def read_bulk(payload: object) -> BulkEdit:
    """Read what many rows get; as ``read_rows_search``."""
    return read_filtered(payload, BulkEdit, {"filter": read_filter}, _check_bulk)


def read_edits(payload: object) -> EditRows:
    """Read edits of rows; as ``read_rows_search``."""
    found = Violations()
    fields = open_payload(payload, EditRows, found)
    edits = fields.get("edits")
    for index, edit in enumerate(edits if isinstance(edits, list) else ()):
        if isinstance(edit, dict):
            _check_edit(edit, (*BODY, "edits", index), found)
    found.raise_if_any()
    return msgspec.convert(fields, EditRows)


def read_create(payload: object) -> CreateDraft:
    """Read which version is to be reviewed; as ``read_rows_search``."""
    found = Violations()
    fields = open_payload(payload, CreateDraft, found)
    name = fields.get("name")
    if isinstance(name, str) and name and not name.strip():
        found.add((*BODY, "name"), "is blank; name the draft, or leave it out.", "blank")
    found.raise_if_any()
    return msgspec.convert(fields, CreateDraft)


def read_undo(payload: object) -> UndoEdit:
    """Read what is to be undone or redone; as ``read_rows_search``."""
    request = read_payload(payload, UndoEdit)
    first, last = request.first, request.last
    if first is not None and (last is None or not first <= last < first + MAX_EDITS):
        found = Violations()
        found.add(
            (*BODY, "first"),
            f"must be at most `last`, and fewer than {MAX_EDITS} before it; give both, as the "
            "receipt of one call of edits has them.",
            "conflict",
        )
        found.raise_if_any()
    return request


def read_seal(payload: object) -> SealDraft:
    """Read what a draft is to become; as ``read_rows_search``."""
    found = Violations()
    fields = open_payload(payload, SealDraft, found)
    name = fields.get("name")
    if fields.get("as") == "version" and name is not None:
        found.add((*BODY, "name"), "is of a new dataset; leave it out for a version.", "refused")
    elif isinstance(name, str) and name and not name.strip():
        found.add((*BODY, "name"), "is blank; name the dataset, or leave it out.", "blank")
    found.raise_if_any()
    return msgspec.convert(fields, SealDraft)


def _check_queue(fields: dict[str, Any], found: Violations) -> None:
    if fields.get("queue") == "mine" and fields.get("reviewer") is None:
        found.add((*BODY, "reviewer"), "is missing; the queue mine needs it.", "missing")


def _check_bulk(fields: dict[str, Any], found: Violations) -> None:
    for name in ("decision", "outcome"):
        if fields.get("action") == "relabel" and fields.get(name) is None:
            found.add((*BODY, name), "is missing; relabelling needs it.", "missing")
        elif fields.get("action") != "relabel" and fields.get(name) is not None:
            found.add((*BODY, name), "goes with the action relabel alone; remove it.", "refused")
    _check_queue(fields, found)


_LABELS = ("outcome", "targets", "rewards")


def _check_edit(edit: dict[str, Any], path: tuple[str | int, ...], found: Violations) -> None:
    action = edit.get("action")
    given = [name for name in _LABELS if edit.get(name) is not None]
    if action == "relabel":
        if edit.get("decision") is None:
            found.add((*path, "decision"), "is missing; relabelling needs it.", "missing")
        if not given:
            found.add(
                (*path, "outcome"), "is missing; give outcome, targets or rewards.", "missing"
            )
        for name in given[1:]:
            found.add((*path, name), f"is given beside {given[0]}; give one of them.", "refused")
    else:
        for name in ("decision", *given):
            if edit.get(name) is not None:
                found.add(
                    (*path, name), "goes with the action relabel alone; remove it.", "refused"
                )
    if action == "note" and edit.get("note") is None:
        found.add((*path, "note"), "is missing; the action note needs it.", "missing")
