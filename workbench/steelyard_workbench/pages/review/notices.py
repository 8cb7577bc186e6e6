"""Notices above the rows: edits that wait, rows that another edited too, and failures."""

from __future__ import annotations

from collections.abc import Sequence

from panel.viewable import Viewable

from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.states import verdict
from steelyard_workbench.pages.review.edits import EditQueue
from steelyard_workbench.pages.review.waiting import Conflict, show_waiting


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
