"""Many rows at once: a table, a selection, and one change for it or for everything that matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
import polars as pl

from steelyard.review.wire import MAX_EDITS, BulkAction, DraftRow, DraftRowPage
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.components.frame_table import FrameTable, PageRequest, TablePage
from steelyard_workbench.parts.datasets.questions import (
    Question,
    as_text,
    digits_of,
    label_chips,
    labels_text,
    questions_of,
)

#: Above this many rows their number must be typed to confirm.
MAX_UNTYPED = 100
_SNIPPET = 300
_COLUMNS = {
    "row": ("row", 65),
    "context": ("text", 205),
    "characters": ("length", 95),
    "labels": ("labels now", 180),
    "state": ("state", 100),
    "note": ("note", 90),
}


@dataclass(frozen=True, slots=True)
class SelectionEdit:
    """The edit of several rows."""

    action: BulkAction
    decision: str | None = None
    outcome: str | None = None

    @property
    def label(self) -> str:
        """Its name, as ``team is deny``."""
        if self.action == "relabel":
            return f"{self.decision} is {self.outcome}"
        return self.action

    def sentence(self, n_rows: int) -> str:
        """Return its effect on so many rows in words.

        >>> SelectionEdit("relabel", "team", "deny").sentence(12403)
        'Set deny on 12,403 rows'
        """
        rows = "1 row" if n_rows == 1 else f"{n_rows:,} rows"
        if self.action == "relabel":
            return f"Set {self.outcome} on {rows}"
        return f"{self.action.capitalize()} {rows}"


_PLAIN = [SelectionEdit(action) for action in ("accept", "exclude", "include", "skip")]


class BulkView(Boxed):
    """Rows in a table; ``fetch`` takes an offset, a limit and an order, and runs in a thread."""

    def __init__(
        self,
        fetch: Callable[[int, int, dict[str, Any] | None], DraftRowPage],
        *,
        on_selected: Callable[[SelectionEdit, list[DraftRow]], None],
        on_matching: Callable[[SelectionEdit, int], None],
        on_open: Callable[[DraftRow], None],
        on_note: Callable[[DraftRow], None],
        on_message: Callable[[str], None],
    ) -> None:
        self._fetch_rows = fetch
        self._on_selected, self._on_matching = on_selected, on_matching
        self._on_message = on_message
        self._seen: dict[int, DraftRow] = {}
        self._changes: dict[str, SelectionEdit] = {change.label: change for change in _PLAIN}
        self._cursor = 0
        self._is_forbidden = False
        self.table = FrameTable(
            self._fetch,
            what="The rows",
            id_column="row",
            columns=_COLUMNS,
            sortable=("row", "characters"),
            wrapped=("context",),
            chips=("labels",),
            selectable=True,
            on_open=lambda row: on_open(self._seen[row["row"]]),
            on_note=lambda row: on_note(self._seen[row["row"]]),
        )
        self._change = pmui.Select(
            label="Change", options=list(self._changes), value="accept", width=260, size="small"
        )
        self._one = action_button("", lambda _: self.apply(), variant="contained", size="small")
        self._all = action_button("", lambda _: self.apply_to_all(), size="small")
        super().__init__()
        #: The question before a change of many rows; it is for the page to hold.
        self.confirm = Confirm()
        self._box = stack(
            pn.FlexBox(self._change, self._one, self._all, align_items="center"), self.table
        )
        self._name()

    @property
    def change(self) -> SelectionEdit:
        """The selected edit."""
        return self._changes[self._change.value]

    def forbid(self) -> None:
        """Disable every change."""
        self._is_forbidden = True
        self._change.disabled = True
        self._name()

    def choose(self, digit: int) -> bool:
        """Choose the outcome of a digit, of the rows' first decision; return whether there is one."""
        outcomes = [change for change in self._changes.values() if change.action == "relabel"]
        decision = self.change.decision or (outcomes[0].decision if outcomes else None)
        named = [change for change in outcomes if change.decision == decision]
        keys = digits_of([str(change.outcome) for change in named])
        if str(digit) not in keys:
            self._on_message(f"There is no answer {digit}.")
            return False
        self._change.value = named[keys.index(str(digit))].label
        self._on_message(f"{self.change.label}: for the {self._n_selected:,} selected rows")
        return True

    def act(self, action: BulkAction) -> None:
        """Do something to the selected rows."""
        self._change.value = action
        self.apply()

    def apply(self) -> None:
        """Apply the selected action to the selected rows."""
        rows = [self._seen[number] for number in self.table.selected if number in self._seen]
        change = self.change
        if not rows:
            self._on_message("No row is selected. Select rows first, or change all that match.")
        elif len(rows) > MAX_EDITS:
            self._on_message(
                f"{len(rows):,} rows are selected and {MAX_EDITS} can be changed in one step. "
                "Narrow the filter and change all that match."
            )
        elif len(rows) > MAX_UNTYPED:
            self.confirm.ask(
                change.sentence(len(rows)), len(rows), lambda: self._change_rows(change, rows)
            )
        else:
            self._change_rows(change, rows)

    def _change_rows(self, change: SelectionEdit, rows: list[DraftRow]) -> None:
        self._on_selected(change, rows)
        # Rows may leave the queue by it: still selected, but unseen, they would get the next change.
        self.table.select(())

    def apply_to_all(self) -> None:
        """Apply the selected action to every matching row, once it is confirmed."""
        change, total = self.change, self.table.total
        if total:
            self.confirm.ask(
                change.sentence(total), total, lambda: self._on_matching(change, total)
            )

    def step(self, step: int, *, extends: bool = False) -> None:
        """Go to the next row of the page or the one before, and select it on the way if asked."""
        numbers = self.table.rows["row"].to_list() if self.table.rows.width else []
        if not numbers:
            return
        if extends:
            here = numbers[min(self._cursor, len(numbers) - 1)]
            self.table.select([*self.table.selected, here])
        self._cursor = min(max(self._cursor + step, 0), len(numbers) - 1)
        row = self._seen[numbers[self._cursor]]
        self.table.mark(row.row)
        self._on_message(
            f"row {row.row}, {labels_text(row.now.labels, row.decisions)}; {self._n_selected:,} selected"
        )

    def open_cursor(self) -> DraftRow | None:
        """Return the row that the keys went to."""
        numbers = self.table.rows["row"].to_list() if self.table.rows.width else []
        return self._seen.get(numbers[self._cursor]) if self._cursor < len(numbers) else None

    @property
    def _n_selected(self) -> int:
        return len(self.table.selected)

    @param.depends("_change.value", "table.selected", "table.total", watch=True)
    def _name(self) -> None:
        self._offer()
        self._one.label = f"{self.change.sentence(self._n_selected)} (selected)"
        self._one.disabled = self._is_forbidden or self._n_selected == 0
        self._all.label = f"{self.change.sentence(self.table.total)} (all that match)"
        self._all.disabled = self._is_forbidden or self.table.total == 0

    def _fetch(self, request: PageRequest) -> TablePage:
        order: dict[str, Any] | None = None
        for column, falls in request.sort[:1]:
            by = "index" if column == "row" else "context_characters"
            order = {"by": by, "descending": falls}
        page = self._fetch_rows(request.offset, request.limit, order)
        self._seen |= {row.row: row for row in page.data}
        self._cursor = 0
        return TablePage(frame_of(page.data), page.total)

    def _offer(self) -> None:
        """Offer the outcomes of every decision that was seen; pages come in a thread."""
        questions: dict[Question, None] = {}
        for row in list(self._seen.values()):
            questions.update(dict.fromkeys(questions_of(row.decisions)))
        for question in questions:
            for name in question.outcomes:
                change = SelectionEdit("relabel", question.id, name)
                self._changes.setdefault(change.label, change)
        if len(self._changes) != len(self._change.options):
            self._change.options = list(self._changes)


class Confirm(Boxed):
    """Asks before many rows are changed; above ``MAX_UNTYPED`` their number must be typed."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Confirmation | None = None
        self._box = pn.Column(margin=0)

    @property
    def is_open(self) -> bool:
        """Whether it asks."""
        return self.asked is not None and bool(self.asked.dialog.open)

    def close(self) -> None:
        """Do nothing."""
        if self.asked is not None:
            self.asked.close()

    def ask(self, sentence: str, n_rows: int, then: Callable[[], None]) -> None:
        """Ask whether to do it."""

        async def act() -> bool:
            then()
            return True

        text = small_text("It is one entry of the history, and one undo takes it back.")
        number = str(n_rows) if n_rows > MAX_UNTYPED else ""
        self.asked = Confirmation(f"{sentence}?", text, action=sentence, act=act, typed=number)
        self._box[:] = [self.asked]


def frame_of(rows: Sequence[DraftRow]) -> pl.DataFrame:
    """Return rows as the table shows them."""
    contexts = [as_text(row.context) for row in rows]
    return pl.DataFrame(
        {
            "row": [row.row for row in rows],
            "context": [text[:_SNIPPET] for text in contexts],
            "characters": [len(text) for text in contexts],
            "labels": [label_chips(row.now.labels, row.decisions) for row in rows],
            "state": [row.now.state for row in rows],
            "note": [row.now.note or "" for row in rows],
        },
    )
