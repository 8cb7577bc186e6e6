"""The review of one draft: its queues, the row in focus or the table, and the panels around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import panel as pn
from panel.viewable import Viewable, Viewer

from steelyard.review.wire import MAX_EDITS, BulkAction, Draft, DraftRow, Queue, RowNow
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.live_text import LiveText
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.problems import not_loaded, problem_of
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.views import empty, failed, loading, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.pages.review.apart import is_apart, note_of
from steelyard_workbench.pages.review.beside import Beside
from steelyard_workbench.pages.review.bulk_view import BulkView
from steelyard_workbench.pages.review.deciding import Deciding
from steelyard_workbench.pages.review.desk_head import DeskHead, NoteDialog
from steelyard_workbench.pages.review.edits import EditQueue, Unsent
from steelyard_workbench.pages.review.outcomes_panel import OutcomesPanel
from steelyard_workbench.pages.review.queue_reader import QueueReader
from steelyard_workbench.pages.review.queue_tabs import MEANINGS, QUEUES, TITLES, QueueTabs
from steelyard_workbench.pages.review.reviewers import Reviewers
from steelyard_workbench.pages.review.row_view import RowView
from steelyard_workbench.pages.review.rows_ahead import PAGE_ROWS, RowsAhead
from steelyard_workbench.pages.review.sealing import AfterSealing, SealDialog
from steelyard_workbench.pages.review.steps import DraftSteps
from steelyard_workbench.pages.review.suggesting import Suggesting
from steelyard_workbench.pages.review.waiting import Notices
from steelyard_workbench.parts.datasets.questions import digits_of
from steelyard_workbench.parts.guidelines import Guidelines
from steelyard_workbench.parts.review.filter_bar import FilterBar
from steelyard_workbench.parts.review.row_filter import RowFilter, read_query, write_query
from steelyard_workbench.parts.review.sending import SEAL

_HIDDEN = "Audit: what the model suggests is hidden until you decide."


class Desk(Boxed):
    """The review of one draft."""

    def __init__(self, session: Session, draft: Draft, on_leave: Callable[[], None]) -> None:
        super().__init__()
        self.session, self.draft = session, draft
        row_filter, named = read_query(session.query)
        queue: Queue = next((name for name in QUEUES if name == named), "to_review")
        self.tabs = QueueTabs(queue, self.open_queue)
        self._notices, self._live = Notices(), LiveText()
        self.steps = DraftSteps(session.client, draft, self.tabs, self._notices, self)
        self.steps.queue.reviewer = session.reviewer or None
        self.reader = self.steps.reader = QueueReader(
            session.client,
            draft,
            queue,
            row_filter,
            reviewer=lambda: self.queue.reviewer,
            settled=self.queue.settled,
            on_seen=lambda rows: self.queue.saw([row.now for row in rows]),
            on_counts=self.tabs.show,
            on_rows=self._show,
        )
        self.deciding = Deciding(
            self.reader,
            self.steps,
            question=lambda: self.view.question,
            suggestions=lambda: self.suggesting.held,
            on_next=lambda: self.step(1),
            on_decision=self._show,
            on_again=self.show_again,
            on_message=self.tell,
        )
        self._filling_table = Task(self._fill_table)
        self._opening = Task(self._open_number, on_failure=self._show_failure)
        self._make_views(on_leave)
        self._box = self._lay_out()
        if draft.sealed is not None:
            self.steps.forbid(_sealed_text(draft))

    def _make_views(self, on_leave: Callable[[], None]) -> None:
        draft, client = self.draft, self.session.client
        self.bar = FilterBar(self.reader.filter, self.filter)
        self.view = RowView(self.deciding.choose, lambda action: self.on_key(action, 1))
        self.bulk = BulkView(
            self.reader.fetch_table,
            on_selected=self.deciding.change_rows,
            on_matching=self.deciding.change_matching,
            on_open=self.open_row,
            on_note=self.ask_for_note,
            on_message=self.tell,
        )
        pn.bind(self._on_selected, self.bulk.table.param.selected, watch=True)
        self.suggesting = Suggesting(
            client,
            find=self.reader.fetch_ahead,
            rows=lambda: self.rows.undecided,
            on_suggested=self._on_suggested,
            on_take=self._take_suggestions,
        )
        self.reviewers = Reviewers(
            client,
            draft,
            chosen=lambda: (self.reader.queue, self.reader.filter),
            reviewer=lambda: self.queue.reviewer,
            is_signed_in=self.session.is_signed_in,
            may_assign=self.session.may_change,
            on_queue=self.open_queue,
            on_assigned=self.reader.count.start,
        )
        self.beside = Beside(
            client,
            draft,
            on_filter=self.bar.choose,
            on_row=self.open_number,
            on_outcomes=self.bar.offer,
            suggesting=self.suggesting,
            reviewers=self.reviewers,
            may_ask=self.session.may_change,
        )
        self.notes = NoteDialog(self.deciding.note)
        self.seal = SealDialog(
            client, draft.id, n_waiting=lambda: self.steps.n_unsettled, on_sealed=self._on_sealed
        )
        self.outcomes = OutcomesPanel(client, draft.id, self._edit_outcomes)
        self._head = DeskHead(
            draft,
            self.session.reviewer,
            is_signed_in=self.session.is_signed_in,
            on_reviewer=self._on_reviewer,
            on_turn=self.turn_view,
            on_outcomes=self.outcomes.turn if self.session.may_change else None,
            on_seal=self.seal.ask if self.session.may_change else None,
            on_leave=on_leave,
        )
        self._guidelines = Guidelines()
        self._middle = stack()
        self._in_middle: Viewable | Viewer | None = None

    def _lay_out(self) -> pn.Column:
        return stack(
            _after_row(self._head),
            self._notices,
            self.outcomes,
            self.tabs,
            _after_row(self.bar),
            self._live,
            side_by_side(self._middle, pn.Column(self._guidelines, self.beside, width=360)),
            self.notes,
            self.seal,
            self.bulk.confirm,
        )

    @property
    def is_bulk(self) -> bool:
        """Whether the table is shown."""
        return bool(self.session.view == "bulk")

    @property
    def rows(self) -> RowsAhead:
        """The walk over the queue."""
        return self.reader.rows

    @property
    def queue(self) -> EditQueue:
        """Edits on their way."""
        return self.steps.queue

    @property
    def last_message(self) -> str:
        """The message that was read out last."""
        return str(self._live.text)

    def look_at(self, query: str) -> None:
        """Take on the rows and the queue of an address; it is for ``start`` to fetch them."""
        row_filter, named = read_query(query)
        queue: Queue = next((name for name in QUEUES if name == named), "to_review")
        self.reader.filter, self.reader.queue = row_filter, queue
        self.bar.show(row_filter)
        self.tabs.choose(queue)

    def start(self) -> None:
        """Show the draft and its news, at the requested row if there is one."""
        if self.session.view == SEAL:
            self.session.view = ""  # asked once, and not whenever the draft is shown again
            self.seal.ask()
        self._head.show_view(is_bulk=self.is_bulk)
        self.beside.filtered(self.reader.filter)
        self._keep_choice()
        if self.session.row < 0:
            self.reload()
        else:
            self.reader.restart()
            self.deciding.leave()
            self._show_in_middle(loading(6, "The row"))
            self._opening.start(self.session.row)
        self.queue.send_again()

    def stop(self) -> None:
        """Ask no more by itself."""
        self.reader.stop()

    def reconnect(self) -> None:
        """Catch up once the server answers: send waiting edits, and fetch failed parts."""
        self.queue.send_again()
        if self.reader.failure is not None:
            self.reload()
        for part in self.beside.parts:
            if part.state == "failed":
                part.start()

    def reload(self) -> None:
        """Fetch the queue from its start."""
        self.session.row = -1
        self.reader.restart()
        self.deciding.leave()
        self._filling_table.drop()
        if self.is_bulk:
            self._filling_table.start()
        else:
            self._show_in_middle(loading(6, "The rows"))
            schedule(self.reader.fill)

    # Keys

    def on_key(self, action: str, number: int) -> bool:
        """Run the action of a key; return whether it has one."""
        if action == "close":
            return self._close()
        if self.notes.is_open or self.seal.is_open or self.bulk.confirm.is_open:
            return False
        acts: dict[str, Callable[[], Any]] = {
            "undo": self.steps.undo,
            "redo": self.steps.redo,
            "view": self.turn_view,
            "search": self.bar.focus,
            "similar": self.beside.show_similar,
            "all": self._ask_for_all,
        }
        if action in acts:
            acts[action]()
            return True
        return self._in_table(action, number) if self.is_bulk else self._in_focus(action, number)

    def _in_focus(self, action: str, number: int) -> bool:
        if action in ("next", "previous"):
            self.step(1 if action == "next" else -1)
        elif action in ("accept", "exclude", "skip"):
            self.deciding.decide(action)
        elif action == "take":
            self.deciding.take_suggestion()
        elif action == "note":
            self.ask_for_note(self.rows.current)
        elif action == "done":
            self.deciding.settle_labels()
        elif action == "choose" and (labels := self.view.labels) is not None:
            ids = [*labels.labels]
            if number % 10 == 0:
                self.deciding.settle_labels()
            elif number <= len(ids):
                self.deciding.choose(ids[number - 1], self.view.turned(ids[number - 1]))
        elif action == "choose":
            question = self.view.question
            keys = () if question is None else digits_of(question.outcomes)
            if question is not None and (digit := str(number % 10)) in keys:
                self.deciding.choose(question.id, question.outcomes[keys.index(digit)])
        elif action in ("back", "forward"):
            self.step(PAGE_ROWS if action == "forward" else -PAGE_ROWS)
        else:
            return False
        return True

    def _in_table(self, action: str, number: int) -> bool:
        bulk, may_change = self.bulk, not self.steps.forbidden
        if action in ("next", "previous"):
            bulk.step(1 if action == "next" else -1)
        elif action == "extend":
            bulk.step(1 if number == 1 else -1, extends=True)
        elif action in ("back", "forward"):
            bulk.table.on_key(action)
        elif action == "choose" and may_change:
            if bulk.choose(number % 10):
                bulk.apply()
        elif action in ("accept", "exclude", "skip") and may_change:
            bulk.act(cast("BulkAction", action))
        elif action == "note":
            self.ask_for_note(bulk.open_cursor())
        else:
            return False
        return True

    def _close(self) -> bool:
        for dialog in (self.notes, self.seal, self.bulk.confirm):
            if dialog.is_open:
                dialog.close()
                return True
        return False

    def _ask_for_all(self) -> None:
        if not self.is_bulk:
            self.turn_view()
        if not self.steps.forbidden:
            self.bulk.apply_to_all()

    # Going about

    def filter(self, row_filter: RowFilter) -> None:
        """Look at other rows."""
        self.reader.filter = row_filter
        self.bar.show(row_filter)
        self._keep_choice()
        self.beside.filtered(row_filter)
        self.reload()

    def open_queue(self, queue: Queue) -> None:
        """Look at another queue."""
        self.reader.queue = queue
        self.tabs.choose(queue)
        self.tell("")  # the message of another queue
        self._keep_choice()
        self.stop()
        self.reload()

    def turn_view(self) -> None:
        """Change between the row in focus and the table."""
        self.session.view = "" if self.is_bulk else "bulk"
        self._head.show_view(is_bulk=self.is_bulk)
        self.reload()

    def open_row(self, row: DraftRow) -> None:
        """Show a row in focus."""
        if self.is_bulk:
            self._filling_table.drop()
            self.session.view = ""
            self._head.show_view(is_bulk=False)
        self.rows.show(row)
        self.show_first()
        if not self.rows.is_complete:
            schedule(self.reader.fill)

    def open_number(self, number: int) -> None:
        """Show a row of any place in the dataset in focus."""
        if self.rows.go_to(number):
            self.show_first()
            return
        self._opening.start(number)

    async def _open_number(self, number: int) -> None:
        rows = await self.reader.fetch_row(number)
        for row in rows:
            self.open_row(row)
        if not rows:
            self._show_trouble(empty(f"The review has no row {number:,}."))

    def _show_failure(self, error: Exception) -> None:
        self._show_trouble(failed(problem_of(error, not_loaded("The row"))))

    def _show_trouble(self, notice: Viewable) -> None:
        self._notices.show_trouble(notice)
        if not self.rows.rows:
            self.reload()

    def step(self, step: int) -> None:
        """Go to the next row or the one before."""
        self.session.row = -1
        self.deciding.leave()
        if self.rows.move(step):
            self._show()
        if self.rows.is_wanting:
            schedule(self.reader.fill)

    def ask_for_note(self, row: DraftRow | None) -> None:
        """Ask for a note on a row, if there is one and it takes any."""
        if row is None or self.steps.forbidden:
            return
        if is_apart(row):
            self.tell("Reviewers see notes, so this row takes them once all have answered.")
        else:
            self.notes.ask(row)

    def _keep_choice(self) -> None:
        """Write which rows are looked at into the address."""
        self.session.query = write_query(self.reader.filter, self.reader.queue)

    def _on_suggested(self) -> None:
        """Put the rows ahead in the order of their suggestions."""
        self.rows.arrange(self.suggesting.held.order)
        if not self.is_bulk:
            self.show_first()

    def _take_suggestions(self, rows: Sequence[DraftRow], n_audit: int) -> None:
        """Write suggestions into rows, but some that are drawn for an audit, once it is confirmed."""
        suggestions = self.suggesting.held

        def take() -> None:
            # A call takes so many edits: the surest rows come first.
            selected_rows = list(rows)[: MAX_EDITS + n_audit]
            self.deciding.take_suggestions(suggestions.draw(selected_rows, n_audit))
            self._on_suggested()
            self.suggesting.tell()

        n_rows = min(len(rows) - n_audit, MAX_EDITS)
        sentence = f"Accept what {suggestions.model} suggests on {n_rows:,} rows"
        self.bulk.confirm.ask(sentence, n_rows, take)

    # What steps change

    def stands(self, now: RowNow) -> None:
        """Note how a row is shown to stand: whether the reviewer agrees with a suggestion."""
        self.suggesting.held.note(now)
        if now.row in self.suggesting.held:
            self.suggesting.tell_soon.start()

    def show_first(self) -> None:
        """Show the row in focus, its first decision being the one that keys choose for."""
        self.deciding.leave()
        self._show()

    def show_again(self) -> None:
        """Show the row in focus, whose decision stays the one that it was."""
        self._show(self.view.active)

    def show_table(self, *, is_new: bool) -> bool:
        """Fetch the table again, if that is shown, or its first page; return whether it is shown."""
        if self.is_bulk:
            schedule(self.bulk.table.restart if is_new else self.bulk.table.refresh)
        return self.is_bulk

    def sent(self) -> None:
        """Note that nothing waits any more."""
        self.beside.edited()
        if self.outcomes.is_open:
            self.outcomes.part.refresh.start(quietly=True)

    def outcomes_changed(self) -> None:
        """Note that outcomes may have other names."""
        self.beside.outcomes_changed()

    def waiting(self) -> None:
        """Note that the waiting edits have changed."""
        self.seal.fit_waiting()

    def forbid(self) -> None:
        """Disable every change."""
        self.view.forbid()
        self.suggesting.forbid()
        self.reviewers.forbid()
        self.bulk.forbid()
        self.outcomes.forbid()
        self._head.forbid()

    def tell(self, text: str) -> None:
        """Read a text out."""
        self._live.text = text

    # Drawing

    async def _fill_table(self) -> None:
        """Fill the table, and show it then: Tabulator takes no data while it is being drawn."""
        if self._in_middle is not self.bulk:
            self._show_in_middle(loading(6, "The rows"))
        await self.queue.settled()
        await self.bulk.table.restart()
        self._show_in_middle(self.bulk)
        await self.reader.count()

    def _show(self, active: int | None = None) -> None:
        row = self.rows.current
        self.beside.row_changed(row)
        self._guidelines.show(() if row is None else row.decisions)
        if self.is_bulk:
            return
        if row is None:
            self._show_in_middle(self._why_no_row())
            return
        suggestions = self.suggesting.held
        self.view.show(
            row,
            f"Row {self.rows.place_text}",
            self.reader.filter.words,
            self.deciding.first if active is None else active,
            suggested=suggestions.of(row),
            picked=self.deciding.picked,
            note=note_of(row) or (_HIDDEN if suggestions.is_hidden(row) else ""),
        )
        self._show_in_middle(self.view)

    def _why_no_row(self) -> Viewable:
        """Show why no row is shown, and the next step."""
        reader, rows = self.reader, self.rows
        if reader.failure is not None:
            return failed(reader.failure, lambda _: self.reload())
        if reader.filling.is_running or (not rows.is_complete and not rows.rows):
            return loading(6, "The rows")
        again = action_button("Start over", lambda _: self.reload())
        if rows.rows:
            text = f"**You went through {TITLES[reader.queue]}:** {len(rows.rows):,} rows. *Finish this version…* makes the next version of the dataset."
            return empty(text, again, is_good=True)
        return self._why_empty(again)

    def _why_empty(self, again: Viewable) -> Viewable:
        queue, suspects, parts = self.reader.queue, self.reader.suspects, self.reader.filter.parts
        if queue == "suspect" and suspects is not None and suspects.status == "computing":
            text = f"{suspects.done:,} of {suspects.rows:,} so far. {suspects.method}"
            return verdict("running", "Comparing rows.", text)
        if queue == "suspect" and suspects is not None and suspects.status == "unavailable":
            return empty(f"**Suspect rows are unavailable.** {suspects.message}", again)
        if queue in ("mine", "assigned") and self.queue.reviewer is None:
            return empty("This queue goes by your name: write it into **Your name** above.")
        if parts:
            clear = action_button(
                "Clear the filter", lambda _: self.filter(RowFilter()), variant="contained"
            )
            names = "*, *".join(escape_markdown(text) for text, _ in parts)
            return empty(f"No rows of {TITLES[queue]} match *{names}*.", clear)
        return empty(f"**{TITLES[queue]} is empty:** no {MEANINGS[queue]}.", again, is_good=True)

    def _show_in_middle(self, view: Viewable | Viewer) -> None:
        """Show the row, the table, or the reason why there is none."""
        # The column makes a pane of its own of a Viewer: only by this is it known what it shows,
        # and to put the same in again has the whole page looked through and laid out.
        if self._in_middle is not view:
            self._in_middle = view
            self._middle[:] = [view]

    # What the person enters

    def _on_selected(self, selected: tuple[Any, ...]) -> None:
        self.session.selected = [int(number) for number in selected]

    def _on_reviewer(self, name: str) -> None:
        self.session.reviewer = name
        self.queue.reviewer = name or None
        self.steps.forget()
        if self.reader.queue in ("mine", "assigned"):
            self.reload()

    def _edit_outcomes(self, edit: dict[str, Any], sentence: str) -> None:
        """Send the changes of a decision's outcomes and guideline, and show the new ones."""
        if self.steps.forbidden:
            return
        self.steps.push(Unsent("outcomes", sentence, given=edit))
        self.tell(f"Saved: {sentence}.")

    def _on_sealed(self, draft: Draft) -> None:
        self.draft = draft
        sealed = draft.sealed
        if sealed is None:
            return
        message = _sealed_text(draft)
        self.steps.forbid(message)
        self.beside.sealed(draft)
        following = AfterSealing(self.session, draft, sealed)
        self._notices.show_trouble(empty(f"**{message}**", is_good=True), following.__panel__())
        following.part.start()
        self.tell("Finished.")  # the sentence stands above


def _sealed_text(draft: Draft) -> str:
    sealed = draft.sealed
    if sealed is None:
        return ""
    is_new = sealed.sealed_as == "dataset"
    what = f"a new dataset, {sealed.dataset_id}" if is_new else f"version {sealed.version}"
    return f"This review is finished: it became {what}. It cannot be edited any more."


def _after_row(part: Viewer) -> Viewable:
    """Return a part that stands under the row on a phone: the row's text and answers come first there."""
    return stack(part, css_classes=["below-on-phone"])
