"""The tabs of the queues, and how many rows each has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import panel as pn
import panel_material_ui as pmui
import param

from steelyard.review.wire import Queue, RowNow
from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.tasks import OneAtATime

#: Queues in the order of their tabs, with their titles.
TITLES: dict[Queue, str] = {
    "to_review": "To review",
    "assigned": "Assigned to me",
    "disagreement": "Disagreement",
    "suspect": "Suspect",
    "audit": "Audit",
    "changed": "Changed",
    "excluded": "Excluded",
    "noted": "Noted",
    "all": "All",
    "mine": "Mine",
}
#: What each queue is, for its empty state.
MEANINGS: dict[Queue, str] = {
    "to_review": "rows without a decision",
    "suspect": "rows whose label models of the other rows contradict",
    "audit": "a random sample, which estimates the labels without bias",
    "changed": "rows that were relabelled or excluded",
    "excluded": "rows that the finished version will not have",
    "noted": "rows with a note",
    "all": "every row",
    "mine": "rows that you edited last",
    "assigned": "rows that were assigned to you and are still to be labelled",
    "disagreement": "undecided rows of which reviewers said different things",
}
QUEUES: tuple[Queue, ...] = tuple(TITLES)
#: Seconds from an edit to the counts that it changes: the row that it shows is drawn before the
#: tabs, which take the browser longer than the row.
_AFTER_EDIT_S = 0.2
#: All ten fit beside the menu of a page 1,280 pixels wide.
_NARROW = {"& .MuiTab-root": {"minWidth": 0, "padding": "12px 10px"}}
_DECIDED = ("accepted", "relabelled", "excluded")


class QueueTabs(Boxed):
    """Chooses the queue."""

    def __init__(self, queue: Queue, on_queue: Callable[[Queue], None]) -> None:
        self._on_queue = on_queue
        self._chosen = queue
        self._counts: dict[str, int] = {}
        self._showing = OneAtATime(self._show_soon)
        self._box = self._tabs = pmui.TabMenu(
            items=tab_items({}),
            active=QUEUES.index(queue),
            variant="scrollable",
            sx=_NARROW,
            margin=(5, 10),
            sizing_mode="stretch_width",
        )
        super().__init__()

    @property
    def items(self) -> list[dict[str, str]]:
        """The tabs, as they are shown."""
        return list(self._tabs.items)

    def choose(self, queue: Queue) -> None:
        """Mark the queue that is looked at; no callback is called."""
        self._chosen = queue
        self._tabs.active = QUEUES.index(queue)

    def show(self, counts: Mapping[str, int]) -> None:
        """Show the counts that the server sent."""
        if counts != self._counts:
            self._counts = dict(counts)
            self._tabs.items = tab_items(self._counts)

    def edited(self, before: RowNow, after: RowNow) -> None:
        """Note that a row stands otherwise, until the server sends the counts."""
        counts = after_edit(self._counts, before, after)
        if counts == self._counts:
            return
        self._counts = counts
        self._showing.start()

    async def _show_soon(self) -> None:
        if pn.state.curdoc is not None:
            await asyncio.sleep(_AFTER_EDIT_S)
        self._tabs.items = tab_items(self._counts)

    @param.depends("_tabs.active", watch=True)
    def _on_tab(self) -> None:
        active = self._tabs.active
        place = active[0] if isinstance(active, tuple) else active
        if place is not None and QUEUES[place] != self._chosen:
            self._on_queue(QUEUES[place])


def tab_items(counts: Mapping[str, int]) -> list[dict[str, str]]:
    """Return the tabs; a queue that is not counted has no number."""
    return [
        {"label": f"{title} ({counts[queue]:,})" if queue in counts else title}
        for queue, title in TITLES.items()
    ]


def after_edit(counts: Mapping[str, int], before: RowNow, after: RowNow) -> dict[str, int]:
    """Return the counts after an edit as far as they are known here, until the server sends them."""

    def queues(now: RowNow) -> dict[str, bool]:
        return {
            "to_review": now.state not in _DECIDED,
            "changed": now.state in ("relabelled", "excluded"),
            "excluded": now.state == "excluded",
            "noted": bool(now.note),
        }

    was, is_ = queues(before), queues(after)
    return {
        queue: max(0, count + int(is_.get(queue, False)) - int(was.get(queue, False)))
        for queue, count in counts.items()
    }
