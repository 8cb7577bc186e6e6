"""A part of a page that fetches its content: a skeleton at first, then data, nothing or a failure.

Every part is by itself: one that fails leaves the rest of its page as it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import param
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.problems import Problem, not_loaded, problem_of
from steelyard_workbench.kit.scheduling import until_drawn, until_shown
from steelyard_workbench.kit.states import failed, loading
from steelyard_workbench.kit.tasks import Task

T = TypeVar("T")


class Loaded(Boxed, Generic[T]):
    """Something fetched and shown.

    ``what`` is its name, as ``The dataset``, for messages. ``fetch`` blocks, and runs in a thread;
    ``show`` takes its data and runs on the page's own loop. A coroutine function may wait for the
    parts within, so that all of it comes at once: the browser may get a change of a part before the
    part itself. Where it ``is_late``, a page that the browser opens first shows it after the others,
    which are drawn sooner without it.

    ``refresh`` fetches and shows; ``quietly`` keeps the old view until the new data is here. ``data``
    is that fetched last, ``problem`` the failure while it is failed.
    """

    state = param.Selector(default="loading", objects=["loading", "shown", "failed"])

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
        self._what, self._fetch, self._show = what, fetch, show
        self._n_lines, self._is_late = n_lines, is_late
        self.refresh = Task(self._refresh, on_failure=self._show_failure)
        self.data: T | None = None
        self.problem: Problem | None = None
        # Panel's own column: a Bokeh figure that is put into a changing column of
        # panel-material-ui 0.16 raises an error in the browser.
        self._box = stack(loading(n_lines, what))

    def start(self) -> None:
        """Fetch and show, without waiting for it."""
        self.refresh.start()

    async def _refresh(self, *, quietly: bool = False) -> None:
        if not quietly:
            self.state = "loading"
            self._box[:] = [loading(self._n_lines, self._what)]
        data = await asyncio.to_thread(self._fetch)
        # Before it is shown, so that the parts within know whether the browser has drawn the page.
        await (until_drawn() if self._is_late else until_shown())
        view = self._show(data)
        if isinstance(view, Awaitable):
            view = await view
        await until_shown()
        self.problem, self.data = None, data
        self._box[:] = [view]
        self.state = "shown"

    def _show_failure(self, error: Exception) -> None:
        self.state, self.problem = "failed", problem_of(error, not_loaded(self._what))
        self._box[:] = [failed(self.problem, self.refresh.on_event)]


class SharedFetch(Generic[T]):
    """Fetches once; who asks meanwhile waits, and who asks later gets the same.

    A failure is raised to every waiting caller, and the next caller tries again.

    ``fetch`` returns the data; blocks.

    >>> numbers = iter([1, 2])
    >>> shared = SharedFetch(lambda: next(numbers))
    >>> shared(), shared()
    (1, 1)
    """

    def __init__(self, fetch: Callable[[], T]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._held: list[T] = []

    def __call__(self) -> T:
        """Return the data; fetch it if it is not there."""
        with self._lock:
            if not self._held:
                self._held.append(self._fetch())
            return self._held[0]

    def held(self, default: T) -> T:
        """Return the data if it was fetched, else another value."""
        return self._held[0] if self._held else default
