"""The drafts use cases: begin a review, edit its rows, undo, redo, and look at its log.

Every edit is an entry of the draft's log, written in a transaction that has the draft to itself: two
reviewers in any processes write one log, and a reviewer who states the revision seen overwrites no one.
Not here: pages of rows (``steelyard.review.rows``), sealing (``steelyard.review.seal``).
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row

from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset, require_version
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.errors import DraftChangedError, NothingToUndoError, RowsLabelledApartError
from steelyard.ids import new_id
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.review import store as rows
from steelyard.review import wire
from steelyard.review.duty_store import duties_after
from steelyard.review.labels import Originals, read_relabels
from steelyard.review.log import Entry, EntryBody, Places
from steelyard.review.outcomes import Renamings
from steelyard.review.reviews import Reviews
from steelyard.review.serializers import (
    check_seen,
    draft_to_wire,
    lock_draft,
    log_entry,
    receipt_of,
    require_draft,
    require_open,
    summarise,
)
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.violations import BODY, Violations, show

#: Times that an undo is tried again when its reviewer's log moved under it.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class OpenDraft:
    """A draft with the version that it reviews."""

    row: Row[Any]
    at: DatasetAt

    @property
    def n_places(self) -> int:
        """Places of the version: every row's index is below it."""
        return self.at.manifest.next_index


class DraftService:
    """The drafts of every account."""

    def __init__(
        self,
        state: State,
        datasets: DatasetService,
        store: FrameStore,
        writes: KeyedWrites,
        reviews: Reviews,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._datasets = datasets
        self._rows = RowStore(store)
        self._writes = writes
        self._reviews = reviews
        self._now = now

    async def create(self, write: Write, request: wire.CreateDraft) -> wire.Draft:
        """Begin a review of a version."""
        caller = write.caller

        def work(connection: Connection) -> wire.Draft:
            dataset = require_dataset(
                connection, caller.account_id, request.dataset_id, is_new_work=True
            )
            version = require_version(connection, dataset, request.version)
            draft_id, now = new_id("draft"), self._now()
            rows.insert_draft(
                connection,
                {
                    "id": draft_id,
                    "account_id": caller.account_id,
                    "dataset_id": dataset.id,
                    "dataset_version": version.version,
                    "name": request.name or dataset.name,
                    "rows": version.manifest.rows,
                    "created_at": now,
                    "updated_at": now,
                },
            )
            draft = require_draft(connection, caller.account_id, draft_id)
            return draft_to_wire(draft, None)

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    async def page(self, caller: Caller, query: wire.DraftsQuery) -> wire.DraftPage:
        """Return a page of the account's drafts, newest first."""
        page = await self._state.read(
            lambda connection: rows.page_drafts(connection, caller.account_id, query)
        )
        return page.to_wire(wire.DraftPage, [summarise(row) for row in page.rows])

    async def get(self, caller: Caller, draft_id: str) -> wire.Draft:
        """Return a draft, the states of its rows counted."""
        draft = await self.find(caller, draft_id)
        return await asyncio.to_thread(self._counted, draft, caller)

    async def find(self, caller: Caller, draft_id: str) -> OpenDraft:
        """Return a draft with its version."""

        def work(connection: Connection) -> Row[Any]:
            return require_draft(connection, caller.account_id, draft_id)

        row = await self._state.read(work)
        at = await self._datasets.dataset_at(
            caller, row.dataset_id, row.dataset_version, is_new_work=False
        )
        return OpenDraft(row, at)

    async def check_apart(self, caller: Caller, dataset_id: str, besides: str = "") -> None:
        """Refuse a reviewer the labels of a dataset while it labels rows of it apart from others.

        Neither the draft ``besides`` counts, nor is anything refused in one that is assigned to it.
        """
        session = caller.session
        if session is None or not caller.only_reviews:
            return
        assigned = await self._state.read(
            lambda connection: rows.open_of(connection, dataset_id, session.email)
        )
        if besides in assigned:
            return
        for draft_id in assigned:
            draft = await self.find(caller, draft_id)
            if await asyncio.to_thread(self._labels_apart, draft, session.email):
                raise RowsLabelledApartError(
                    "You label rows of this dataset apart from others, in the review "
                    f"{draft.row.name!r}; its labels are shown to you once that is sealed."
                )

    def _labels_apart(self, draft: OpenDraft, reviewer: str) -> bool:
        with self._reviews.current_duties(draft.row.id, draft.n_places) as duties:
            return bool((duties.assigned_to(reviewer) & duties.is_blind).any())

    async def delete(self, write: Write, draft_id: str) -> wire.DeletedDraft:
        """Delete a draft and its log. Its sealed dataset stays."""

        def work(connection: Connection) -> wire.DeletedDraft:
            require_draft(connection, write.caller.account_id, draft_id)
            rows.delete_draft(connection, draft_id)
            return wire.DeletedDraft(id=draft_id)

        deleted = await self._writes.once(write, work, window_s=SECONDS_A_DAY)
        self._reviews.forget(draft_id)
        return deleted

    async def edit(self, write: Write, draft_id: str, request: wire.EditRows) -> wire.EditReceipt:
        """Edit rows, all of the edits or none."""
        await self._writes.replay_known(write)
        caller = write.caller
        draft = await self.find(caller, draft_id)
        require_open(draft.row)
        bodies, originals = await asyncio.to_thread(self._prepare, draft, request.edits)
        await asyncio.to_thread(self.catch_up, draft)

        def work(connection: Connection) -> wire.EditReceipt:
            row = require_open(lock_draft(connection, caller.account_id, draft_id))
            self.require_not_apart(connection, draft, [edit.row for edit in request.edits])
            with self._reviews.cached(draft_id, draft.n_places) as review:
                later = rows.entries_after(connection, draft_id, review.revision)
                check_seen(review, later, request.edits, request.reviewer, originals)
                made = [
                    Entry(
                        number=row.revision + place,
                        reviewer=request.reviewer,
                        action=edit.action,
                        row=edit.row,
                        body=body,
                    )
                    for place, (edit, body) in enumerate(
                        zip(request.edits, bodies, strict=True), start=1
                    )
                ]
                self.append(connection, draft_id, made)
                edited = list(dict.fromkeys(edit.row for edit in request.edits))
                return receipt_of(draft_id, review, [*later, *made], edited, len(edited), originals)

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    async def undo(self, write: Write, draft_id: str, request: wire.UndoEdit) -> wire.EditReceipt:
        """Undo the reviewer's own last entry, or those named; edits of others to their rows stay."""
        return await self._step(write, draft_id, request, action="undo")

    async def redo(self, write: Write, draft_id: str, request: wire.UndoEdit) -> wire.EditReceipt:
        """Redo the reviewer's last undone edit."""
        return await self._step(write, draft_id, request, action="redo")

    async def history(
        self, caller: Caller, draft_id: str, query: wire.HistoryQuery
    ) -> wire.History:
        """Return a page of a draft's log, newest first."""

        def work(connection: Connection) -> wire.History:
            draft = require_draft(connection, caller.account_id, draft_id)
            entries, has_more = rows.page_entries(
                connection, draft_id, row=query.row, after=query.after, limit=query.limit
            )
            return wire.History(
                data=[log_entry(row) for row in entries],
                has_more=has_more,
                next_after=entries[-1].number if has_more else None,
                revision=draft.revision,
            )

        return await self._state.read(work)

    def catch_up(self, draft: OpenDraft) -> None:
        """Apply the committed entries of a draft's logs; it blocks."""
        with self._reviews.current(draft.row.id, draft.n_places):
            pass
        with self._reviews.current_duties(draft.row.id, draft.n_places):
            pass

    def require_not_apart(
        self, connection: Connection, draft: OpenDraft, places: Sequence[int] | Places
    ) -> None:
        """Refuse rows that two reviewers label apart, while an answer of them is missing."""
        draft_id = str(draft.row.id)
        with self._reviews.cached_duties(draft_id, draft.n_places) as duties:
            later = duties_after(connection, draft_id, duties.number)
            if not duties.number and not later:
                return
            part = duties.among(places, later)
        apart = part.rows[part.is_waiting]
        if len(apart) == 0:
            return
        raise RowsLabelledApartError(
            f"{len(apart)} of the rows wait for reviewers who label them apart, and nothing was "
            "changed; leave them out, or answer with POST /v1/drafts/{draft}/answers.",
            details=[{"row": row} for row in apart[: wire.MAX_LISTED_ROWS].tolist()],
        )

    def originals(self, draft: OpenDraft, places: Sequence[int]) -> Originals:
        """Return rows as the version has them, under the draft's names of outcomes; it blocks."""
        stored_rows = self._rows.rows_at(draft.at.manifest, list(dict.fromkeys(places)))
        return Originals.read(stored_rows, draft.at.manifest.method, self.renamings(draft))

    def stored(self, draft: OpenDraft, places: Sequence[int]) -> Originals:
        """Return rows as ``originals`` does, under the version's names of outcomes."""
        stored_rows = self._rows.rows_at(draft.at.manifest, list(dict.fromkeys(places)))
        return Originals.read(stored_rows, draft.at.manifest.method)

    def renamings(self, draft: OpenDraft) -> Renamings:
        """Return a draft's names of outcomes, by decision; it blocks."""
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            return review.renamings()

    def append(self, connection: Connection, draft_id: str, made: Sequence[Entry]) -> None:
        """Write new entries; the reviewer's undone edits before them cannot be redone after."""
        rows.append_entries(connection, draft_id, made, at=self._now())
        rows.drop_redoable(connection, draft_id, made[0].reviewer)

    @staticmethod
    def reader_of(connection: Connection, dataset_id: str) -> str | None:
        """Return the work that reads a dataset, as ``DatasetService.register_reader`` asks."""
        return "an open draft with edits" if rows.has_open(connection, dataset_id) else None

    def _counted(self, draft: OpenDraft, caller: Caller) -> wire.Draft:
        known = () if caller.only_reviews else self._reviews.known(draft.row.id, draft.n_places)
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            return draft_to_wire(draft.row, review, known)

    def _prepare(
        self, draft: OpenDraft, edits: Sequence[wire.Edit]
    ) -> tuple[list[EntryBody], Originals]:
        """Hold edits against the rows that they are about."""
        originals = self.originals(draft, [edit.row for edit in edits])
        violations = Violations()
        bodies = [
            read_relabels(edit, originals, (*BODY, "edits", place), violations)
            for place, edit in enumerate(edits)
        ]
        violations.raise_if_any()
        return [body for body in bodies if body is not None], originals

    async def _step(
        self, write: Write, draft_id: str, request: wire.UndoEdit, *, action: wire.EntryAction
    ) -> wire.EditReceipt:
        await self._writes.replay_known(write)
        draft = await self.find(write.caller, draft_id)
        for _ in range(_TRIES):
            try:
                return await self._try_step(write, draft, request, action)
            except _MovedError:
                continue
        raise DraftChangedError(
            f"The log moved at each of {_TRIES} tries, and nothing was changed; send it again."
        )

    async def _try_step(
        self, write: Write, draft: OpenDraft, request: wire.UndoEdit, action: wire.EntryAction
    ) -> wire.EditReceipt:
        """Undo or redo the requested edit, unless it changes meanwhile."""
        draft_id = str(draft.row.id)
        find = functools.partial(_find_targets, draft_id=draft_id, request=request, action=action)
        targets = await self._state.read(find)
        if not targets:
            require_open(draft.row)
            raise _nothing_to(action, request)
        numbers = [target.number for target in targets]
        places = await asyncio.to_thread(rows_of, targets)
        listed = places[: wire.MAX_LISTED_ROWS].tolist()
        originals = await asyncio.to_thread(self.originals, draft, listed)
        await asyncio.to_thread(self.catch_up, draft)

        def work(connection: Connection) -> wire.EditReceipt:
            row = require_open(lock_draft(connection, write.caller.account_id, draft_id))
            if [entry.number for entry in find(connection)] != numbers:
                raise _MovedError
            if action == "redo":
                self.require_not_apart(connection, draft, places)
            with self._reviews.cached(draft_id, draft.n_places) as review:
                later = rows.entries_after(connection, draft_id, review.revision)
                made = [
                    Entry(
                        number=row.revision + place,
                        reviewer=target.reviewer,
                        action=action,
                        row=target.row,
                        places=target.places,
                        target=target.number,
                    )
                    # The newest is undone first, and redone last.
                    for place, target in enumerate(
                        reversed(targets) if action == "undo" else targets, start=1
                    )
                ]
                rows.append_entries(connection, draft_id, made, at=self._now())
                undone = rows.UNDONE if action == "undo" else rows.HOLDS
                rows.set_undone(connection, draft_id, numbers, undone)
                return receipt_of(
                    draft_id,
                    review,
                    [*later, *made],
                    listed,
                    len(places),
                    originals,
                    undone=numbers[-1],
                )

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)


class _MovedError(Exception):
    """The edit to undo has changed. Reload the row."""


def _find_targets(
    connection: Connection, draft_id: str, request: wire.UndoEdit, action: wire.EntryAction
) -> list[Entry]:
    """Return the entries that a request is to undo or redo, the oldest first."""
    if request.last is not None:
        first = request.last if request.first is None else request.first
        standing = rows.HOLDS if action == "undo" else rows.UNDONE
        return rows.entries_between(
            connection, draft_id, request.reviewer, standing, first, request.last
        )
    find = rows.find_undoable if action == "undo" else rows.find_redoable
    entry = find(connection, draft_id, request.reviewer)
    return [] if entry is None else [entry]


def _nothing_to(action: wire.EntryAction, request: wire.UndoEdit) -> NothingToUndoError:
    whose = "without a name" if request.reviewer is None else show(request.reviewer)
    which = "" if request.last is None else " of the entries named"
    return NothingToUndoError(
        f"The reviewer {whose} has nothing{which} to {action} in this draft; look at its log."
    )


def rows_of(entries: Sequence[Entry]) -> NDArray[np.int64]:
    """Return the rows that entries are about, ascending, each once."""
    return np.unique(np.concatenate([entry.rows() for entry in entries]))
