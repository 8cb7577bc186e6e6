"""The keys of a review and their actions, in focus, in the table, and while a dialog is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from steelyard.review.wire import BulkAction, DraftRow
from steelyard_workbench.pages.review.beside import Beside
from steelyard_workbench.pages.review.bulk_view import BulkView
from steelyard_workbench.pages.review.deciding import Deciding
from steelyard_workbench.pages.review.note_dialog import NoteDialog
from steelyard_workbench.pages.review.row_view import RowView
from steelyard_workbench.pages.review.rows_ahead import PAGE_ROWS, RowsAhead
from steelyard_workbench.pages.review.seal_dialog import SealDialog
from steelyard_workbench.pages.review.steps import DraftSteps
from steelyard_workbench.parts.datasets.questions import digits_of
from steelyard_workbench.parts.review.filter_bar import FilterBar


class KeyedDesk(Protocol):
    """The methods of the desk that keys call."""

    bar: FilterBar
    beside: Beside
    bulk: BulkView
    deciding: Deciding
    notes: NoteDialog
    seal: SealDialog
    steps: DraftSteps
    view: RowView

    @property
    def rows(self) -> RowsAhead:
        """The walk over the queue."""

    @property
    def is_bulk(self) -> bool:
        """Whether the table is shown."""

    def turn_view(self) -> None:
        """Change between the row in focus and the table."""

    def step(self, step: int) -> None:
        """Go to the next row or the one before."""

    def ask_for_note(self, row: DraftRow | None) -> None:
        """Ask for a note on a row."""


class DeskKeys:
    """Runs the actions of keys."""

    def __init__(self, desk: KeyedDesk) -> None:
        self._desk = desk

    def press(self, action: str, number: int) -> bool:
        """Run the action of a key; return whether it has one."""
        desk = self._desk
        if action == "close":
            return self._close()
        if desk.notes.is_open or desk.seal.is_open or desk.bulk.confirm.is_open:
            return False
        acts: dict[str, Callable[[], Any]] = {
            "undo": desk.steps.undo,
            "redo": desk.steps.redo,
            "view": desk.turn_view,
            "search": desk.bar.focus,
            "similar": desk.beside.show_similar,
            "all": self._ask_for_all,
        }
        if action in acts:
            acts[action]()
            return True
        return self._in_table(action, number) if desk.is_bulk else self._in_focus(action, number)

    def _in_focus(self, action: str, number: int) -> bool:
        desk = self._desk
        if action in ("next", "previous"):
            desk.step(1 if action == "next" else -1)
        elif action in ("accept", "exclude", "skip"):
            desk.deciding.decide(action)
        elif action == "take":
            desk.deciding.take_suggestion()
        elif action == "note":
            desk.ask_for_note(desk.rows.current)
        elif action == "done":
            desk.deciding.settle_labels()
        elif action == "choose" and (labels := desk.view.labels) is not None:
            ids = [*labels.labels]
            if number % 10 == 0:
                desk.deciding.settle_labels()
            elif number <= len(ids):
                desk.deciding.choose(ids[number - 1], desk.view.turned(ids[number - 1]))
        elif action == "choose":
            question = desk.view.question
            keys = () if question is None else digits_of(question.outcomes)
            if question is not None and (digit := str(number % 10)) in keys:
                desk.deciding.choose(question.id, question.outcomes[keys.index(digit)])
        elif action in ("back", "forward"):
            desk.step(PAGE_ROWS if action == "forward" else -PAGE_ROWS)
        else:
            return False
        return True

    def _in_table(self, action: str, number: int) -> bool:
        bulk, may_change = self._desk.bulk, not self._desk.steps.forbidden
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
            self._desk.ask_for_note(bulk.open_cursor())
        else:
            return False
        return True

    def _close(self) -> bool:
        for dialog in (self._desk.notes, self._desk.seal, self._desk.bulk.confirm):
            if dialog.is_open:
                dialog.close()
                return True
        return False

    def _ask_for_all(self) -> None:
        if not self._desk.is_bulk:
            self._desk.turn_view()
        if not self._desk.steps.forbidden:
            self._desk.bulk.apply_to_all()
