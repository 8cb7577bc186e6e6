"""The steps of a review: shown at once, sent in order, undone and redone, refused or in conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from steelyard.client import Client
from steelyard.review.duties_wire import AnswerReceipt
from steelyard.review.wire import Draft, DraftRow, EditReceipt, RowNow
from steelyard_workbench.kit.problems import Problem
from steelyard_workbench.kit.views import failed
from steelyard_workbench.pages.review.edits import EditQueue, Unsent
from steelyard_workbench.pages.review.queue_reader import QueueReader
from steelyard_workbench.pages.review.queue_tabs import QueueTabs
from steelyard_workbench.pages.review.waiting import Conflict, Notices


class ResultPlace(Protocol):
    """The place where the result of a step is shown."""

    def stands(self, now: RowNow) -> None:
        """Note how a row is shown to stand from now on."""

    def show_first(self) -> None:
        """Show the row in focus, its first decision being the one that keys choose for."""

    def show_again(self) -> None:
        """Show the row in focus, whose decision stays the one that it was."""

    def show_table(self, *, is_new: bool) -> bool:
        """Fetch the table again, if that is shown, or its first page; return whether it is shown."""

    def reload(self) -> None:
        """Fetch the queue from its start."""

    def outcomes_changed(self) -> None:
        """Note that outcomes may have other names."""

    def sent(self) -> None:
        """Note that nothing waits any more."""

    def waiting(self) -> None:
        """Note that the waiting edits have changed."""

    def forbid(self) -> None:
        """Disable every change."""

    def tell(self, text: str) -> None:
        """Read a text out."""


class DraftSteps:
    """A person's steps in a draft, and their results; ``forbidden`` says why none is taken."""

    reader: QueueReader

    def __init__(
        self, client: Client, draft: Draft, tabs: QueueTabs, notices: Notices, place: ResultPlace
    ) -> None:
        self._tabs, self._notices, self._shown = tabs, notices, place
        self._done: list[Unsent] = []
        self._undone: list[Unsent] = []
        #: Rows that another person edited too, and that wait for a choice.
        self.conflicts: list[Conflict] = []
        self.queue = EditQueue(client, draft.id, self)
        self.forbidden = ""

    @property
    def n_unsettled(self) -> int:
        """Edits that are no part of the draft yet: not sent, or in conflict."""
        n_conflicting = sum(len(conflict.entry.edits) for conflict in self.conflicts)
        return len(self.queue.unsent) + n_conflicting

    def forbid(self, why: str) -> None:
        """Take none any more."""
        self.forbidden = why
        self._notices.show_forbidden(why)
        self._shown.forbid()

    def forget(self) -> None:
        """Forget the steps that could be undone: another name's steps are not this one's."""
        self._done.clear()
        self._undone.clear()

    # Doing

    def show_edit(
        self, row: DraftRow, edit: Mapping[str, Any], after: DraftRow, label: str
    ) -> Unsent:
        """Show an edit of a row at once; it is for the caller to push, once the next row is shown."""
        self._notices.show_trouble()
        self.show_row(row, after)
        return Unsent(
            "edit",
            f"row {row.row}: {label}",
            edits=[{"row": row.row, **edit}],
            before=(row,),
            after=(after,),
        )

    def show_row(self, before: DraftRow, after: DraftRow) -> None:
        """Show a row of the walk as it is once an edit of it is sent."""
        self._tabs.edited(before.now, after.now)
        self.reader.rows.put(after)
        self._shown.stands(after.now)

    def push(self, entry: Unsent) -> None:
        """Send a step."""
        self._done.append(entry)
        self._undone.clear()
        self.queue.push(entry)

    def undo(self) -> None:
        """Undo the last step; one that was not sent yet is not sent at all."""
        if self.forbidden:
            return
        waiting = self.queue.take_back()
        if waiting is not None:
            if waiting in self._done:
                self._done.remove(waiting)
            self._put(waiting.before)
            self._undone.clear()
            self._shown.tell(f"Not sent: {waiting.label}")
            return
        entry = self._done.pop() if self._done else None
        if entry is not None and entry.kind == "answer":
            # What was answered stays until another answer takes its place.
            self.reader.rows.go_to(entry.before[0].row)
            self._shown.show_first()
            self._shown.tell(f"{entry.label}: choose again to answer differently.")
            return
        self._send_again("undo", entry, () if entry is None else entry.before)
        if entry is not None:
            self._undone.append(entry)

    def redo(self) -> None:
        """Redo the last undone step."""
        if self.forbidden:
            return
        entry = self._undone.pop() if self._undone else None
        self._send_again("redo", entry, () if entry is None else entry.after)
        if entry is not None:
            self._done.append(entry)

    def _send_again(self, kind: str, entry: Unsent | None, rows: tuple[DraftRow, ...]) -> None:
        label = kind if entry is None else f"{kind}: {entry.label}"
        walk = self.reader.rows
        before = tuple(shown_row for row in rows if (shown_row := walk.get(row.row)) is not None)
        self._put(rows)
        self._shown.tell(label)
        self.queue.push(Unsent(kind, label, before=before, after=rows, of=entry))

    def _put(self, rows: tuple[DraftRow, ...]) -> None:
        """Show rows as they were, the first of them in focus."""
        self._bring_back(rows)
        if rows:
            self.reader.rows.go_to(rows[0].row)
        self._shown.show_first()

    def _bring_back(self, rows: tuple[DraftRow, ...]) -> None:
        walk = self.reader.rows
        for row in rows:
            shown_row = walk.get(row.row)
            if shown_row is not None:
                self._tabs.edited(shown_row.now, row.now)
            walk.put(row)
            self._shown.stands(row.now)

    # How they end

    def on_sent(self, entry: Unsent, receipt: EditReceipt | AnswerReceipt) -> None:
        """Note the server's changes."""
        self.reader.revision = max(self.reader.revision, receipt.revision)
        if isinstance(receipt, AnswerReceipt):
            self.reader.rows.answered(receipt.row, receipt.status)
        waiting = set().union(*(unsent.rows for unsent in self.queue.unsent))
        for now in receipt.rows:
            if now.row not in waiting:
                self.reader.rows.tell(now)
        is_whole = entry.kind in ("bulk", "outcomes")
        is_step_back = entry.kind in ("undo", "redo") and not entry.after
        is_wide = is_whole or is_step_back
        if entry.kind == "outcomes" or is_step_back:
            self._shown.outcomes_changed()
        if self._shown.show_table(is_new=is_whole):
            pass
        elif is_wide:
            self._shown.reload()
        else:
            self._shown.show_again()
        if not self.queue.unsent:
            self._shown.sent()
            self.reader.count_in_quiet.start()

    def on_refused(self, entry: Unsent, problem: Problem) -> None:
        """Bring refused edits back, with the reason; the row in focus stays."""
        is_gone = problem.code == "nothing_to_undo"
        self._forget(entry if entry.of is None else entry.of)
        if entry.of is not None and not is_gone:
            # The edit to undo still holds, and the one to redo does not.
            (self._done if entry.kind == "undo" else self._undone).append(entry.of)
        if problem.is_forbidden:
            self.forbid(problem.message)
        if is_gone:
            self._shown.tell(problem.message)
            if entry.of is not None:
                # Another tab of the same reviewer went on: how the rows stand is not known here.
                self._shown.reload()
            return
        self._notices.show_trouble(failed(problem))
        self._shown.tell(f"Not done: {entry.label}. {problem.message}")
        self._bring_back(entry.before)
        if not self._shown.show_table(is_new=False):
            self._shown.show_again()

    def on_dropped(self, entry: Unsent) -> None:
        """Forget an ``undo`` or ``redo`` of a step that the server did not take."""
        if entry.of is not None:
            self._forget(entry.of)

    def on_conflict(self, entry: Unsent, now: list[RowNow]) -> None:
        """Ask which edit is to hold, unless the step was undone meanwhile."""
        is_taken_back = entry in self._undone
        self._forget(entry)
        if is_taken_back:
            self._show_theirs(entry, now)
            self._shown.tell(f"Edited by somebody else meanwhile, and taken back: {entry.label}.")
            return
        self.conflicts.append(Conflict(entry, now, self.keep_mine, self.keep_theirs))
        self._notices.show_conflicts(self.conflicts)
        self._shown.waiting()
        self._shown.tell(
            f"Somebody else edited this row: {entry.label}. Choose which edit to keep."
        )

    def _forget(self, entry: Unsent) -> None:
        """Forget a step, so that it is neither undone nor redone."""
        for stack in (self._done, self._undone):
            if entry in stack:
                stack.remove(entry)

    def on_waiting(self) -> None:
        """Show the waiting edits."""
        self._notices.show_waiting(self.queue)
        self._shown.waiting()

    # Conflicts

    def keep_mine(self, conflict: Conflict) -> None:
        """Send an edit again, over the other's that was shown."""
        self._close(conflict)
        self.queue.looked_at(conflict.now)
        entry = conflict.entry
        again = Unsent(
            "edit", entry.label, edits=entry.edits, before=entry.before, after=entry.after
        )
        self.push(again)

    def keep_theirs(self, conflict: Conflict) -> None:
        """Keep the rows as another person left them, and send the edits of the others."""
        self._close(conflict)
        entry, theirs = conflict.entry, {now.row for now in conflict.now}
        self._show_theirs(entry, conflict.now)
        rest = [edit for edit in entry.edits if edit["row"] not in theirs]
        if rest:
            before, after = (
                tuple(row for row in rows if row.row not in theirs)
                for rows in (entry.before, entry.after)
            )
            label = f"{len(rest):,} rows of: {entry.label}"
            self.push(Unsent("edit", label, edits=rest, before=before, after=after))

    def _show_theirs(self, entry: Unsent, now: Sequence[RowNow]) -> None:
        self.queue.looked_at(now)
        theirs = {state.row: state for state in now}
        for row in entry.before:
            if row.row in theirs:
                self.reader.rows.tell(theirs[row.row])
        if not self._shown.show_table(is_new=False):
            self._shown.show_again()

    def _close(self, conflict: Conflict) -> None:
        self.conflicts.remove(conflict)
        self._notices.show_conflicts(self.conflicts)
        self._shown.waiting()
