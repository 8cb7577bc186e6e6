"""The review of one draft: its queues, the row in focus or the table, and every key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.wire.drafts import (
    BulkAction,
    Draft,
    DraftRow,
    DraftRowPage,
    EditReceipt,
    Queue,
    RowNow,
    RowState,
)
from steelyard_workbench.components.live_text import LiveText
from steelyard_workbench.later import later
from steelyard_workbench.problems import Problem, problem_of
from steelyard_workbench.review.beside import Beside
from steelyard_workbench.review.bulk_view import BulkView, Change
from steelyard_workbench.review.counts import MEANINGS, TITLES, after_edit, tab_items
from steelyard_workbench.review.edits import EditQueue, Unsent
from steelyard_workbench.review.filter_bar import FilterBar
from steelyard_workbench.review.note_dialog import NoteDialog
from steelyard_workbench.review.questions import (
    as_told,
    expected_of,
    questions_of,
    relabel_fields,
    with_label,
    with_now,
    with_state,
)
from steelyard_workbench.review.row_filter import RowFilter, read_query, write_query
from steelyard_workbench.review.row_view import RowView
from steelyard_workbench.review.rows_ahead import PAGE_ROWS, RowsAhead
from steelyard_workbench.review.seal_dialog import SealDialog
from steelyard_workbench.review.waiting import Conflict, show_waiting
from steelyard_workbench.session import Session
from steelyard_workbench.states import empty, failed, loading, verdict

_QUEUES: tuple[Queue, ...] = tuple(TITLES)
_STATE_OF: dict[str, RowState] = {
    "accept": "accepted",
    "exclude": "excluded",
    "skip": "skipped",
    "include": "untouched",
}
#: Milliseconds between two looks at how far the search for suspect labels is.
_SUSPECTS_MS = 2000
#: Seconds after the last edit when the queues are counted anew: counting reads every row's state,
#: and the counts that an edit changes are known here already.
_QUIET_S = 1.0


class Desk(Viewer):
    """The review of one draft.

    Parameters
    ----------
    session : Session
    draft : Draft
    on_leave : callable
        Called when the person wants another draft.

    Attributes
    ----------
    rows : RowsAhead
        The walk over the queue.
    queue : EditQueue
        Edits on their way.
    """

    def __init__(self, session: Session, draft: Draft, on_leave: Callable[[], None]) -> None:
        super().__init__()
        self._session, self._client, self.draft = session, session.client, draft
        chosen, queue = read_query(session.query)
        self._filter = chosen
        self._name: Queue = next((name for name in _QUEUES if name == queue), "to_review")
        self._counts: dict[str, int] = {}
        self._revision = draft.revision
        self._round = 0
        self._is_filling = False
        self._failure: Problem | None = None
        self._forbidden = _sealed_text(draft)
        self._suspects: Any = None
        self._poll: Any = None
        self._done: list[Unsent] = []
        self._undone: list[Unsent] = []
        self._touched = False
        self._n_sent = 0
        self._open_conflicts: list[Conflict] = []
        self.rows = RowsAhead(self._name)
        self.queue = EditQueue(session.client, draft.id, self)
        self.queue.reviewer = session.reviewer or None
        self._make_views(on_leave)

    def __panel__(self) -> Viewable:
        return self._box

    # What is shown

    def _make_views(self, on_leave: Callable[[], None]) -> None:
        draft = self.draft
        self._tabs = pmui.TabMenu(
            items=tab_items({}), active=_QUEUES.index(self._name), variant="scrollable",
            sizing_mode="stretch_width",
        )  # fmt: skip
        self._tabs.param.watch(self._on_tab, "active")
        self._bar = FilterBar(self._filter, self.filter)
        self._view = RowView(self.choose, self._act)
        self._bulk = BulkView(
            self._fetch_bulk,
            on_selected=self._change_selected,
            on_matching=self._change_matching,
            on_open=self.open_row,
            on_told=self._tell,
        )
        self._bulk.table.param.watch(self._on_selected, "selected")
        self._beside = Beside(
            self._client,
            draft,
            on_filter=self._bar.choose,
            on_row=self.open_number,
            on_outcomes=self._bar.offer,
        )
        self._note = NoteDialog(self.note)
        self._seal = SealDialog(
            self._client,
            draft.id,
            n_waiting=lambda: len(self.queue.unsent),
            on_sealed=self._on_sealed,
        )
        self._live = LiveText()
        self._waiting = pn.Column(sizing_mode="stretch_width")
        self._trouble = pn.Column(sizing_mode="stretch_width")
        self._conflicts = pn.Column(sizing_mode="stretch_width")
        self._middle = pn.Column(sizing_mode="stretch_width")
        self._in_middle: Viewable | Viewer | None = None
        self._reviewer = pmui.TextInput(
            label="Your name", value=self._session.reviewer, max_length=64, width=180, size="small"
        )
        self._reviewer.param.watch(self._on_reviewer, "value")
        self._toggle = pmui.Button(label="", variant="outlined", size="small")
        self._toggle.on_click(lambda _: self.turn_view())
        self._seal_button = pmui.Button(label="Seal…", variant="contained", size="small")
        self._seal_button.on_click(lambda _: self._seal.ask())
        leave = pmui.Button(label="Other drafts", variant="text", size="small")
        leave.on_click(lambda _: on_leave())
        title = f"**{draft.name}** · version {draft.dataset_version} · {draft.rows:,} rows"
        self._box = pn.Column(
            pn.FlexBox(
                pmui.Typography(title, variant="body1"),
                self._reviewer, self._toggle, self._seal_button, leave,
                align_items="center",
            ),
            self._waiting,
            self._conflicts,
            self._trouble,
            self._tabs,
            self._bar,
            self._live,
            pn.Row(self._middle, self._beside, sizing_mode="stretch_width"),
            self._note,
            self._seal,
            self._bulk.confirm,
            sizing_mode="stretch_width",
        )  # fmt: skip
        self._show_forbidden()

    @property
    def is_bulk(self) -> bool:
        """Whether the table is shown."""
        return bool(self._session.view == "bulk")

    @property
    def beside(self) -> Beside:
        """The panel beside the rows."""
        return self._beside

    @property
    def bulk(self) -> BulkView:
        """The table of rows."""
        return self._bulk

    @property
    def seal(self) -> SealDialog:
        """The dialog that seals."""
        return self._seal

    @property
    def notes(self) -> NoteDialog:
        """The dialog of a note."""
        return self._note

    @property
    def conflicts(self) -> list[Conflict]:
        """Rows that somebody else edited too, and that wait for a choice."""
        return list(self._open_conflicts)

    @property
    def told(self) -> str:
        """What was read out last."""
        return str(self._live.text)

    def start(self) -> None:
        """Show the draft, and what is new in it."""
        self._toggle.label = f"{'Focus' if self.is_bulk else 'Bulk'} view (b)"
        self._beside.filtered(self._filter)
        self.reload()
        if self.queue.unsent:
            later(self.queue.send)

    def stop(self) -> None:
        """Ask no more by itself."""
        if self._poll is not None:
            self._poll.stop()
            self._poll = None

    def reconnect(self) -> None:
        """See the server again: send what waits, and fetch what failed."""
        self.queue.is_lost = False
        if self.queue.unsent:
            later(self.queue.send)
        if self._failure is not None:
            self.reload()
        for part in self._beside.parts:
            if part.state == "failed":
                part.start()

    def reload(self) -> None:
        """Fetch the queue from its start."""
        self._round += 1
        self._is_filling = False
        self._failure = None
        self.rows = RowsAhead(self._name)
        self._touched = False
        if self.is_bulk:
            later(self._fill_table)
        else:
            self._show_in_middle(loading(6, "The rows"))
            later(self.fill)

    # Fetching

    async def fill(self) -> None:
        """Fetch rows ahead, where too few are."""
        if self._is_filling or not self.rows.is_wanting:
            return
        self._is_filling = True
        asked, rows = self._round, self.rows
        try:
            offset = rows.offset
            while True:
                page = await asyncio.to_thread(self._fetch, offset, PAGE_ROWS)
                if asked != self._round:
                    return
                self._take(page)
                if rows.take(page) or not page.has_more:
                    break
                offset += PAGE_ROWS
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            if asked == self._round:
                self._failure = problem_of(error, "The rows")
                self._show()
            return
        finally:
            if asked == self._round:
                self._is_filling = False
        self._failure = None
        self._show()

    async def _fill_table(self) -> None:
        """Fill the table, and show it then: Tabulator takes no data while it is being drawn."""
        asked = self._round
        if self._in_middle is not self._bulk:
            self._show_in_middle(loading(6, "The rows"))
        await self._bulk.table.restart()
        if asked == self._round and self.is_bulk:
            self._show_in_middle(self._bulk)
            await self.count()

    async def count(self) -> None:
        """Count the queues anew."""
        try:
            page = await asyncio.to_thread(self._fetch, 0, 1)
        except Exception as error:  # noqa: BLE001
            problem_of(error, "The counts")  # those shown stay; the log has what nobody foresaw
        else:
            self._take(page)

    async def _count_in_quiet(self) -> None:
        self._n_sent += 1
        sent = self._n_sent
        if pn.state.curdoc is not None:
            await asyncio.sleep(_QUIET_S)
        if sent == self._n_sent:
            await self.count()

    def _fetch(self, offset: int, limit: int, order: dict[str, Any] | None = None) -> DraftRowPage:
        return self._client.drafts.rows(
            self.draft.id,
            self._name,
            where=self._filter.where,
            text=self._filter.text,
            order=order,
            offset=offset,
            limit=limit,
            reviewer=self.queue.reviewer,
        )

    def _fetch_bulk(self, offset: int, limit: int, order: dict[str, Any] | None) -> DraftRowPage:
        page = self._fetch(offset, limit, order)
        self._revision = max(self._revision, page.revision)
        self.queue.saw([row.now for row in page.data])
        return page

    def _take(self, page: DraftRowPage) -> None:
        self.queue.saw([row.now for row in page.data])
        self._revision = max(self._revision, page.revision)
        self._suspects = page.suspects
        self._set_counts(dict(page.counts))
        is_computing = page.suspects.status == "computing" and self._name == "suspect"
        if is_computing and self._poll is None and pn.state.curdoc is not None:
            self._poll = pn.state.add_periodic_callback(self._look, period=_SUSPECTS_MS)
        elif not is_computing:
            self.stop()

    async def _look(self) -> None:
        if self._name == "suspect" and not self.rows.rows:
            self.rows = RowsAhead(self._name)
            await self.fill()

    def _set_counts(self, counts: dict[str, int]) -> None:
        if counts != self._counts:
            self._counts = counts
            self._tabs.items = tab_items(counts)

    # Going about

    def filter(self, chosen: RowFilter) -> None:
        """Look at other rows."""
        self._filter = chosen
        self._bar.show(chosen)
        self._session.query = write_query(chosen, self._name)
        self._beside.filtered(chosen)
        self.reload()

    def open_queue(self, queue: Queue) -> None:
        """Look at another queue."""
        self._name = queue
        self._tabs.active = _QUEUES.index(queue)
        self._session.query = write_query(self._filter, queue)
        self.stop()
        self.reload()

    def turn_view(self) -> None:
        """Change between the row in focus and the table."""
        self._session.view = "" if self.is_bulk else "bulk"
        self._toggle.label = f"{'Focus' if self.is_bulk else 'Bulk'} view (b)"
        self.reload()

    def open_row(self, row: DraftRow) -> None:
        """Show a row in focus."""
        if self.is_bulk:
            self._session.view = ""
            self._toggle.label = "Bulk view (b)"
        self.rows.show(row)
        self._touched = False
        self._show()
        if not self.rows.is_complete:
            later(self.fill)

    def open_number(self, number: int) -> None:
        """Show a row of any place in the dataset in focus."""
        if self.rows.go_to(number):
            self._touched = False
            self._show()
            return

        async def fetch() -> None:
            where = {"type": "index", "at_least": number, "below": number + 1}
            try:
                page = await asyncio.to_thread(
                    self._client.drafts.rows, self.draft.id, "all", where=where, limit=1
                )
            except Exception as error:  # noqa: BLE001  whatever it is, the person is told
                self._trouble[:] = [failed(problem_of(error, f"Row {number}"))]
                return
            self.queue.saw([row.now for row in page.data])
            for row in page.data:
                self.open_row(row)

        later(fetch)

    def step(self, step: int) -> None:
        """Go to the next row or the one before."""
        self._touched = False
        if self.rows.move(step):
            self._show()
        if self.rows.is_wanting:
            later(self.fill)

    # Deciding

    def choose(self, decision: str, outcome: str) -> None:
        """Choose the outcome of a decision of the row, and go on.

        The next decision of the row comes first, then the next row. A row whose present labels were
        all chosen again is accepted.
        """
        row = self.rows.current
        if row is None or self._forbidden:
            return
        questions = questions_of(row.decisions)
        place = next((i for i, one in enumerate(questions) if one.id == decision), None)
        if place is None:
            return
        question = questions[place]
        entry: Unsent | None = None
        if expected_of(row, decision) != outcome:
            edit = {"action": "relabel", "decision": decision}
            edit |= relabel_fields(row, question, outcome)
            after = with_label(row, question, outcome)
            entry = self._show_edit(row, edit, after, f"{decision} is {outcome}")
            self._touched = True
        said = f"row {self._place_text()}, {outcome}"
        if place + 1 < len(questions):
            self._show(active=place + 1)
            self._tell(f"{said}; next: {questions[place + 1].id}")
        else:
            if not self._touched and row.now.state in ("untouched", "skipped"):
                accepted = with_state(row, "accepted")
                entry = self._show_edit(row, {"action": "accept"}, accepted, "accept")
            self._tell(said)
            self.step(1)
        if entry is not None:
            self._push(entry)

    def decide(self, action: str) -> None:
        """Accept, exclude, include or skip the row, and go on."""
        row = self.rows.current
        if row is None or self._forbidden:
            return
        question = self._view.question
        near = (row.neighbours_label or {}).get(question.id) if question is not None else None
        if (
            action == "accept"
            and question is not None
            and near is not None
            and expected_of(row, question.id) is None
        ):
            self.choose(question.id, near)
            return
        if action == "exclude" and row.now.state == "excluded":
            action = "include"
        said = f"row {self._place_text()}, {_STATE_OF[action]}"
        if action == "include":
            state: RowState = "relabelled" if row.now.relabelled else "untouched"
        elif action == "accept" and row.now.relabelled:
            state = "relabelled"
        else:
            state = _STATE_OF[action]
        entry = self._show_edit(row, {"action": action}, with_state(row, state), action)
        self._tell(said)
        self.step(1)
        self._push(entry)

    def note(self, row: DraftRow, text: str) -> None:
        """Note something on a row."""
        edit = {"action": "note", "note": text}
        entry = self._show_edit(row, edit, with_now(row, note=text or None), "note")
        self._tell(f"row {row.row}, noted")
        self._show(active=self._view.active)
        self._push(entry)

    def undo(self) -> None:
        """Take back what was done last; what waits still is not sent at all."""
        if self._forbidden:
            return
        waiting = self.queue.take_back()
        if waiting is not None:
            if waiting in self._done:
                self._done.remove(waiting)
            self._put(waiting.before)
            self._undone.clear()
            self._tell(f"Not sent: {waiting.label}")
            self._show()
            return
        entry = self._done.pop() if self._done else None
        self._send_step("undo", entry, () if entry is None else entry.before)
        if entry is not None:
            self._undone.append(entry)

    def redo(self) -> None:
        """Do again what was undone last."""
        if self._forbidden:
            return
        entry = self._undone.pop() if self._undone else None
        self._send_step("redo", entry, () if entry is None else entry.after)
        if entry is not None:
            self._done.append(entry)

    def _send_step(self, kind: str, entry: Unsent | None, rows: tuple[DraftRow, ...]) -> None:
        said = kind if entry is None else f"{kind}: {entry.label}"
        before = tuple(found for row in rows if (found := self.rows.get(row.row)) is not None)
        self._put(rows)
        self._tell(said)
        self.queue.push(Unsent(kind, said, before=before, after=rows))

    def _show_edit(
        self, row: DraftRow, edit: dict[str, Any], after: DraftRow, label: str
    ) -> Unsent:
        """Show an edit at once; it is for the caller to send, once the next row is shown."""
        self._trouble[:] = []
        self._set_counts(after_edit(self._counts, row.now, after.now))
        self.rows.put(after)
        return Unsent(
            "edit",
            f"row {row.row}: {label}",
            edits=[{"row": row.row, **edit}],
            before=(row,),
            after=(after,),
        )

    def _push(self, entry: Unsent) -> None:
        self._done.append(entry)
        self._undone.clear()
        self.queue.push(entry)

    def _put(self, rows: tuple[DraftRow, ...]) -> None:
        """Show rows as they were, the first of them in focus."""
        for row in rows:
            found = self.rows.get(row.row)
            if found is not None:
                self._set_counts(after_edit(self._counts, found.now, row.now))
            self.rows.put(row)
        if rows:
            self.rows.go_to(rows[0].row)
            self._touched = False
        self._show()

    # Many rows

    def _change_selected(self, change: Change, rows: list[DraftRow]) -> None:
        edits, after = [], []
        for row in rows:
            edit: dict[str, Any] = {"row": row.row, "action": change.action}
            question = next(
                (one for one in questions_of(row.decisions) if one.id == change.decision), None
            )
            if change.action != "relabel":
                after.append(with_state(row, _STATE_OF[change.action]))
            elif question is not None and change.outcome in question.outcomes:
                edit |= {"decision": question.id, **relabel_fields(row, question, change.outcome)}
                after.append(with_label(row, question, change.outcome))
            else:
                continue  # the row does not ask that decision
            edits.append(edit)
        if not edits:
            self._tell(f"None of the selected rows asks {change.decision}.")
            return
        asked = {edit["row"] for edit in edits}
        before = tuple(row for row in rows if row.row in asked)
        label = f"{len(edits):,} rows: {change.label}"
        self._push(Unsent("edit", label, edits=edits, before=before, after=tuple(after)))
        self._tell(label)

    def _change_matching(self, change: Change, n_rows: int) -> None:
        given: dict[str, Any] = {
            "action": change.action,
            "expected": n_rows,
            "where": self._filter.where,
            "text": self._filter.text,
            "queue": self._name,
            "decision": change.decision,
            "outcome": change.outcome,
            "revision": self._revision,
        }
        self._push(Unsent("bulk", f"{n_rows:,} rows: {change.label}", given=given))
        self._tell(change.sentence(n_rows))

    def _on_selected(self, event: Any) -> None:
        self._session.selected = [int(number) for number in event.new]

    # How edits end

    def on_sent(self, entry: Unsent, receipt: EditReceipt) -> None:
        """Take in what the server changed."""
        self._revision = max(self._revision, receipt.revision)
        waiting = set().union(*(one.rows for one in self.queue.unsent))
        for now in receipt.rows:
            if now.row not in waiting:
                self.rows.tell(now)
        is_wide = entry.kind == "bulk" or (entry.kind in ("undo", "redo") and not entry.after)
        if self.is_bulk:
            later(self._bulk.table.restart if entry.kind == "bulk" else self._bulk.table.refresh)
        elif is_wide:
            self.reload()
        else:
            self._show(active=self._view.active)
        if not self.queue.unsent:
            self._beside.edited()
            later(self._count_in_quiet)

    def on_refused(self, entry: Unsent, problem: Problem) -> None:
        """Bring back what the server refused, with the reason."""
        for stack in (self._done, self._undone):
            if entry in stack:
                stack.remove(entry)
        if problem.is_forbidden:
            self._forbidden = problem.message
            self._show_forbidden()
        if problem.code == "nothing_to_undo":
            self._tell(problem.message)
        else:
            self._trouble[:] = [failed(problem)]
            self._tell(f"Not done: {entry.label}. {problem.message}")
        self._put(entry.before)
        if self.is_bulk:
            later(self._bulk.table.refresh)

    def on_conflict(self, entry: Unsent, now: list[RowNow]) -> None:
        """Ask what is to hold."""
        if entry in self._done:
            self._done.remove(entry)
        self._open_conflicts.append(Conflict(entry, now, self.keep_mine, self.keep_theirs))
        self._conflicts[:] = self._open_conflicts
        self._tell(f"Edited by somebody else meanwhile: {entry.label}. Choose what is to hold.")

    def on_waiting(self) -> None:
        """Show what waits."""
        shown = show_waiting(self.queue)
        if shown or len(self._waiting):
            self._waiting[:] = shown
        self._seal.fit_waiting()

    def keep_mine(self, conflict: Conflict) -> None:
        """Send an edit again, over the other's that was shown."""
        self._close_conflict(conflict)
        entry = conflict.entry
        again = Unsent(
            "edit", entry.label, edits=entry.edits, before=entry.before, after=entry.after
        )
        self._push(again)

    def keep_theirs(self, conflict: Conflict) -> None:
        """Keep the rows as another left them, and send what concerns the others."""
        self._close_conflict(conflict)
        entry, theirs = conflict.entry, {now.row: now for now in conflict.now}
        for row in entry.before:
            if row.row in theirs:
                self.rows.put(as_told(row, theirs[row.row]))
        rest = [edit for edit in entry.edits if edit["row"] not in theirs]
        if rest:
            before, after = (
                tuple(row for row in rows if row.row not in theirs)
                for rows in (entry.before, entry.after)
            )
            label = f"{len(rest):,} rows of: {entry.label}"
            self._push(Unsent("edit", label, edits=rest, before=before, after=after))
        if self.is_bulk:
            later(self._bulk.table.refresh)
        else:
            self._show(active=self._view.active)

    def _close_conflict(self, conflict: Conflict) -> None:
        self._open_conflicts.remove(conflict)
        self._conflicts[:] = self._open_conflicts

    # Keys

    def on_key(self, action: str, number: int) -> bool:
        """Do what a key is for; give whether there was a use for it."""
        if action == "close":
            return self._close()
        if self._note.is_open or self._seal.is_open or self._bulk.confirm.is_open:
            return False
        acts: dict[str, Callable[[], Any]] = {
            "undo": self.undo,
            "redo": self.redo,
            "view": self.turn_view,
            "search": self._bar.focus,
            "similar": self._beside.show_similar,
            "all": self._ask_for_all,
        }
        if action in acts:
            acts[action]()
            return True
        return self._bulk_key(action, number) if self.is_bulk else self._focus_key(action, number)

    def _focus_key(self, action: str, number: int) -> bool:
        if action in ("next", "previous"):
            self.step(1 if action == "next" else -1)
        elif action in ("accept", "exclude", "skip"):
            self.decide(action)
        elif action == "note":
            self._ask_for_note()
        elif action == "choose":
            question = self._view.question
            if question is not None and number <= len(question.outcomes):
                self.choose(question.id, question.outcomes[number - 1])
        elif action in ("back", "forward"):
            self.step(PAGE_ROWS if action == "forward" else -PAGE_ROWS)
        else:
            return False
        return True

    def _bulk_key(self, action: str, number: int) -> bool:
        if action in ("next", "previous"):
            self._bulk.step(1 if action == "next" else -1)
        elif action == "extend":
            self._bulk.step(1 if number == 1 else -1, extends=True)
        elif action in ("back", "forward"):
            self._bulk.table.on_key(action)
        elif action == "choose" and not self._forbidden:
            self._bulk.choose(number)
            self._bulk.apply()
        elif action in ("accept", "exclude", "skip") and not self._forbidden:
            self._bulk.act(cast("BulkAction", action))
        elif action == "note":
            row = self._bulk.open_cursor()
            if row is not None and not self._forbidden:
                self._note.ask(row)
        else:
            return False
        return True

    def _act(self, action: str) -> None:
        self.on_key(action, 1)

    def _close(self) -> bool:
        for dialog in (self._note, self._seal, self._bulk.confirm):
            if dialog.is_open:
                dialog.close()
                return True
        return False

    def _ask_for_note(self) -> None:
        row = self.rows.current
        if row is not None and not self._forbidden:
            self._note.ask(row)

    def _ask_for_all(self) -> None:
        if not self.is_bulk:
            self.turn_view()
        if not self._forbidden:
            self._bulk.apply_to_all()

    # Drawing

    def _show(self, active: int = 0) -> None:
        row = self.rows.current
        self._beside.row_changed(row)
        if self.is_bulk:
            return
        if row is None:
            self._show_in_middle(self._nothing())
            return
        self._view.show(row, f"Row {self._place_text()}", self._filter.words, active)
        self._show_in_middle(self._view)

    def _show_in_middle(self, view: Viewable | Viewer) -> None:
        """Show the row, the table, or what stands for them."""
        # The column makes a pane of its own of a Viewer: only by this is it known what it shows,
        # and to put the same in again has the whole page looked through and laid out.
        if self._in_middle is not view:
            self._in_middle = view
            self._middle[:] = [view]

    def _nothing(self) -> Viewable:
        """Say why no row is shown, and what can be done."""
        if self._failure is not None:
            return failed(self._failure, lambda _: self.reload())
        if self._is_filling or (not self.rows.is_complete and not self.rows.rows):
            return loading(6, "The rows")
        again = pmui.Button(label="Start over", variant="outlined")
        again.on_click(lambda _: self.reload())
        if self.rows.rows:
            text = f"**You went through {TITLES[self._name]}:** {len(self.rows.rows):,} rows."
            return empty(text, again, is_good=True)
        return self._no_rows(again)

    def _no_rows(self, again: Viewable) -> Viewable:
        suspects, meaning = self._suspects, MEANINGS[self._name]
        if self._name == "suspect" and suspects is not None and suspects.status == "computing":
            return verdict(
                "running",
                "Comparing rows.",
                f"{suspects.done:,} of {suspects.rows:,} so far. {suspects.method}",
            )
        if self._name == "suspect" and suspects is not None and suspects.status == "unavailable":
            return empty(f"**Suspect rows are unavailable.** {suspects.message}", again)
        if self._name == "mine" and self.queue.reviewer is None:
            return empty("This queue goes by your name: write it into **Your name** above.")
        parts = self._filter.parts
        if parts:
            clear = pmui.Button(label="Clear the filter", variant="contained")
            clear.on_click(lambda _: self.filter(RowFilter()))
            shown = "*, *".join(text.replace("*", "\\*") for text, _ in parts)
            return empty(f"No rows of {TITLES[self._name]} match *{shown}*.", clear)
        return empty(f"**{TITLES[self._name]} is empty:** no {meaning}.", again, is_good=True)

    def _place_text(self) -> str:
        return f"{self.rows.place + 1:,} of {self.rows.total:,}"

    def _show_forbidden(self) -> None:
        """Disable what cannot be done, and say why."""
        if not self._forbidden:
            return
        self._trouble[:] = [verdict("off", "Nothing can be changed.", self._forbidden)]
        self._view.forbid()
        self._bulk.forbid()
        self._seal_button.disabled = True

    def _tell(self, text: str) -> None:
        self._live.text = text

    # What the person enters

    def _on_tab(self, event: Any) -> None:
        place = event.new[0] if isinstance(event.new, tuple) else event.new
        if place is not None and _QUEUES[place] != self._name:
            self.open_queue(_QUEUES[place])

    def _on_reviewer(self, event: Any) -> None:
        name = (event.new or "").strip()
        if name == self._session.reviewer:
            return
        self._session.reviewer = name
        self.queue.reviewer = name or None
        # What another name did is not this one's to undo.
        self._done.clear()
        self._undone.clear()
        if self._name == "mine":
            self.reload()

    def _on_sealed(self, draft: Draft) -> None:
        self.draft = draft
        self._forbidden = _sealed_text(draft)
        self._show_forbidden()
        sealed = draft.sealed
        if sealed is None:
            return
        go = pmui.Button(label=f"Open version {sealed.version}", variant="contained")
        go.on_click(
            lambda _: self._session.open(
                "versions", dataset=sealed.dataset_id, version=sealed.version
            )
        )
        self._trouble[:] = [empty(f"**{self._forbidden}**", go, is_good=True)]
        self._tell(self._forbidden)


def _sealed_text(draft: Draft) -> str:
    sealed = draft.sealed
    if sealed is None:
        return ""
    what = "a new dataset" if sealed.sealed_as == "dataset" else f"version {sealed.version}"
    return f"This draft is sealed: it became {what}, `{sealed.dataset_id}`. It takes no more edits."
