"""The tabs of the queues, and how many rows each has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.wire.drafts import Queue, RowNow
from steelyard_workbench.later import later
from steelyard_workbench.review.counts import TITLES, after_edit, tab_items

QUEUES: tuple[Queue, ...] = tuple(TITLES)
#: Seconds from an edit to the counts that it changes: the row that it shows is drawn before the
#: tabs, which take the browser longer than the row.
_AFTER_EDIT_S = 0.2


class QueueTabs(Viewer):
    """Chooses the queue.

    Parameters
    ----------
    queue : str
        That which is chosen at first.
    on_queue : callable
        Called with the queue that was chosen.
    """

    def __init__(self, queue: Queue, on_queue: Callable[[Queue], None]) -> None:
        super().__init__()
        self._on_queue = on_queue
        self._chosen = queue
        self._counts: dict[str, int] = {}
        self._is_due = False
        self._tabs = pmui.TabMenu(
            items=tab_items({}), active=QUEUES.index(queue), variant="scrollable",
            sizing_mode="stretch_width",
        )  # fmt: skip
        self._tabs.param.watch(self._on_tab, "active")

    def __panel__(self) -> Viewable:
        return self._tabs

    @property
    def items(self) -> list[dict[str, str]]:
        """The tabs, as they are shown."""
        return list(self._tabs.items)

    def choose(self, queue: Queue) -> None:
        """Mark the queue that is looked at; nobody is told."""
        self._chosen = queue
        self._tabs.active = QUEUES.index(queue)

    def show(self, counts: Mapping[str, int]) -> None:
        """Show the counts that the server told."""
        if counts != self._counts:
            self._counts = dict(counts)
            self._tabs.items = tab_items(self._counts)

    def edited(self, before: RowNow, after: RowNow) -> None:
        """Take in that a row stands otherwise, until the server tells the counts."""
        counts = after_edit(self._counts, before, after)
        if counts == self._counts:
            return
        self._counts = counts
        if not self._is_due:
            self._is_due = True
            later(self._show_soon)

    async def _show_soon(self) -> None:
        if pn.state.curdoc is not None:
            await asyncio.sleep(_AFTER_EDIT_S)
        self._is_due = False
        self._tabs.items = tab_items(self._counts)

    def _on_tab(self, event: Any) -> None:
        place = event.new[0] if isinstance(event.new, tuple) else event.new
        if place is not None and QUEUES[place] != self._chosen:
            self._on_queue(QUEUES[place])
