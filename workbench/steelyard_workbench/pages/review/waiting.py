"""Unsettled edits: those that wait for the server, and rows that another person changed too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import panel as pn
from panel.viewable import Viewable

from steelyard.review.wire import RowNow
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.views import table, verdict
from steelyard_workbench.pages.review.edits import EditQueue, Unsent
from steelyard_workbench.parts.datasets.questions import labels_text

#: Unsent edits that are listed; the rest is counted.
_LISTED = 20
#: Fewer than these are on their way, which is not worth a word.
_UNTOLD = 5


class Conflict(Boxed):
    """A row as it is now beside the sent edit, to choose from."""

    def __init__(
        self,
        entry: Unsent,
        now: Sequence[RowNow],
        on_mine: Callable[[Conflict], None],
        on_theirs: Callable[[Conflict], None],
    ) -> None:
        super().__init__()
        self.entry, self.now = entry, tuple(now)
        mine = action_button(
            "Keep mine", lambda _: on_mine(self), variant="contained", size="small"
        )
        theirs = action_button("Keep theirs", lambda _: on_theirs(self), size="small")
        self._box = stack(
            verdict(
                "unsure",
                "Edited by somebody else meanwhile.",
                "Your edit was not applied. Choose which edit to keep.",
            ),
            table(
                ("row", "as it is now", "what you sent"),
                [(str(row.row), now_text(row), sent_text(entry, row.row)) for row in now],
                label="Rows that were edited meanwhile",
            ),
            pn.Row(mine, theirs),
        )


def now_text(now: RowNow) -> str:
    """Return in words how a row stands and whose edit that is."""
    text = f"{now.state}, {labels_text(now.labels) or 'no label'}, by {now.reviewer or 'unnamed'}"
    return f"{text}, note: {now.note}" if now.note else text


def sent_text(entry: Unsent, row: int) -> str:
    """Return in words the effect of an edit on a row."""
    texts = []
    for edit in entry.edits:
        if edit["row"] == row:
            if edit["action"] == "relabel":
                texts.append(f"{edit['decision']} is {edit.get('outcome') or 'relabelled'}")
            else:
                texts.append(str(edit["action"]))
            if edit.get("note"):
                texts.append(f"note: {edit['note']}")
    return ", ".join(texts)


def show_waiting(queue: EditQueue) -> list[Viewable]:
    """List the edits that wait, once it is worth telling."""
    unsent = queue.unsent
    if not unsent or (not queue.is_lost and len(unsent) < _UNTOLD):
        return []
    n = len(unsent)
    edits = "1 edit is" if n == 1 else f"{n} edits are"
    if not queue.is_lost:
        return [verdict("running", f"{edits} on the way.")]
    rows = [(entry.label,) for entry in unsent[:_LISTED]]
    if n > _LISTED:
        rows.append((f"and {n - _LISTED} more",))
    again = action_button("Send now", lambda _: queue.send_again(), size="small")
    return [
        verdict("unsure", f"{edits} not sent.", "They are sent when the server is back."),
        again,
        table(("not sent yet",), rows, label="Edits that are not sent"),
    ]


class Notices(Boxed):
    """Shows notices before the next row; empty while there are none."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = stack()
        self._conflicts = stack()
        self._trouble = stack()
        self._box = stack(self._waiting, self._conflicts, self._trouble)

    def show_waiting(self, queue: EditQueue) -> None:
        """Show which edits are not sent."""
        shown = show_waiting(queue)
        if shown or len(self._waiting):
            self._waiting[:] = shown

    def show_conflicts(self, conflicts: Sequence[Conflict]) -> None:
        """Show rows that another person edited too."""
        self._conflicts[:] = list(conflicts)

    def show_trouble(self, *views: Viewable) -> None:
        """Show a problem or a result; nothing clears it."""
        self._trouble[:] = list(views)

    def show_forbidden(self, why: str) -> None:
        """Show why nothing can be changed."""
        self.show_trouble(verdict("off", "Nothing can be changed.", why))
