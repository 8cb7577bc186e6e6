"""A part of a page that fetches what it shows: a skeleton at first, then data, nothing or a failure.

Every part is by itself: one that fails leaves the rest of its page as it is. Fetching runs in a
thread, and an answer that a newer question has overtaken is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import panel as pn
from panel.viewable import Viewable, Viewer

from steelyard_workbench.later import later, until_drawn, until_shown
from steelyard_workbench.problems import Problem, problem_of
from steelyard_workbench.states import failed, loading

T = TypeVar("T")


class Loaded(Viewer, Generic[T]):
    """Something fetched and shown.

    Parameters
    ----------
    what : str
        Its name, as ``The dataset``, for messages.
    fetch : callable
        Gives the data; blocks, and raises what went wrong.
    show : callable
        Takes the data and gives what to show; it runs on the page's own loop. A coroutine function
        may wait for what is within, so that all of it comes at once: the browser may get a change
        of what it was sent a moment ago before that itself.
    n_lines : int, default 4
        How many lines its skeleton has.
    is_late : bool, default False
        In a page that the browser opens first, show it after the others: they are drawn sooner
        without it.

    Attributes
    ----------
    state : {"loading", "shown", "failed"}
    data : object or None
        What was fetched last.
    problem : Problem or None
        What went wrong, while it is failed.
    """

    def __init__(
        self,
        what: str,
        fetch: Callable[[], T],
        show: Callable[[T], Viewable | Awaitable[Viewable]],
        *,
        n_lines: int = 4,
        is_late: bool = False,
    ) -> None:
        super().__init__()
        self._what = what
        self._fetch = fetch
        self._show = show
        self._n_lines = n_lines
        self._is_late = is_late
        self._asked = 0
        self.state = "loading"
        self.data: T | None = None
        self.problem: Problem | None = None
        # Panel's own column: a Bokeh figure that is put into a changing column of
        # panel-material-ui 0.16 raises an error in the browser.
        self._box = pn.Column(loading(n_lines, what), sizing_mode="stretch_width")

    def __panel__(self) -> Viewable:
        return self._box

    def start(self) -> None:
        """Fetch and show, without waiting for it."""
        later(self.refresh)

    def drop(self) -> None:
        """Take no answer that is still under way: it is shown no more."""
        self._asked += 1

    async def refresh(self, *_: Any, quietly: bool = False) -> None:
        """Fetch and show.

        Parameters
        ----------
        quietly : bool, default False
            Keep showing what there is until the new data is here.
        """
        self._asked += 1
        asked = self._asked
        if not quietly:
            self.state = "loading"
            self._box[:] = [loading(self._n_lines, self._what)]
        try:
            data = await asyncio.to_thread(self._fetch)
            if self._is_late:
                await until_drawn()
            shown = self._show(data) if asked == self._asked else None
            if isinstance(shown, Awaitable):
                shown = await shown
            await until_shown()
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            if asked != self._asked:
                return
            self.state, self.problem = "failed", problem_of(error, self._what)
            self._box[:] = [failed(self.problem, self.refresh)]
            return
        if shown is None or asked != self._asked:
            return
        self.state, self.problem, self.data = "shown", None, data
        self._box[:] = [shown]
