"""The base of every page: parts that fetch their content by themselves, and keys of its own.

A part is a skeleton at first, then data, nothing or a failure; one that fails leaves the rest of its page
as it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.problems import Problem, not_loaded, problem_of
from steelyard_workbench.kit.scheduling import until_drawn, until_shown
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Poller, Scope, Task, Write
from steelyard_workbench.kit.views import failed, loading

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


class Page(Boxed):
    """A page of the workbench.

    ``visit`` is the one that lasts; another once the page was left or built again. A long task belongs
    to the visit it began in: after it, the session may have changed.
    """

    slug: ClassVar[str]
    #: Its title, and a sentence, while nothing is open on it.
    title: ClassVar[str]
    summary: ClassVar[str] = ""
    #: Fields of the session that ``on_session`` takes in while the page is shown.
    watched: ClassVar[Sequence[str]] = ()
    #: Milliseconds between two calls of ``look`` while the page is shown; 0: it is not called.
    look_ms: ClassVar[int] = 0

    def __init__(self, session: Session) -> None:
        self.session = session
        super().__init__()
        self.client = session.client
        self.parts: list[Loaded[Any]] = []
        self.visit = Scope()
        self._watcher: Any = None
        self._poller = Poller(self.look, self.look_ms)
        self._box = stack(name=self.title)

    def open(self) -> None:
        """Show the page; called each time that a person goes to it."""
        self.begin_visit()
        self._box[:] = self.build()
        for part in list(self.parts):
            part.start()
        if self.watched and self._watcher is None:
            self._watcher = self.session.param.watch(self._on_watched, list(self.watched))
        if self.look_ms:
            self._poller.start()

    def close(self) -> None:
        """Leave the page: running work is not shown any more, and nothing stays selected."""
        self.begin_visit()
        self.session.selected = []
        if self._watcher is not None:
            self.session.param.unwatch(self._watcher)
            self._watcher = None
        self._poller.stop()

    def begin_visit(self) -> None:
        """End the visit that lasts with all that is under way, and begin another."""
        self.visit.end()
        self.visit = Scope()
        self.parts = []

    def reconnect(self) -> None:
        """Catch up once the server answers: parts that failed are fetched again, the others stay."""
        for part in list(self.parts):
            if part.state == "failed":
                part.start()

    def answered(self) -> None:
        """Note that the server answers; called every few seconds, shown or not."""

    def build(self) -> list[Viewable]:
        """Return the parts of the page; those made with ``part`` load once it is shown."""
        raise NotImplementedError

    def part(self, part: Loaded[Any]) -> Viewable:
        """Add a part that loads when the page is shown, and belongs to the visit."""
        part.refresh.scope = self.visit
        self.parts.append(part)
        return part.__panel__()

    def on_key(self, _action: str, _number: int) -> bool:
        """Run the action of a key; return whether the page has one."""
        return False

    async def look(self) -> None:
        """Refresh running work."""

    def on_session(self, *events: Any) -> None:
        """Note that something that is watched has changed."""

    def _on_watched(self, *events: Any) -> None:
        # Back in the browser changes the page and the rest at once: a page that was left by that
        # hears of the rest all the same.
        if self.session.page == self.slug:
            self.on_session(*events)


class OnePartPage(Page):
    """Shows ``content``, with the part ``shown``, anew whenever a watched field of the session changes."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.shown: Loaded[Any] | None = None

    def content(self) -> list[Viewable]:
        """Return the list, or the selected item, with ``shown`` in it."""
        raise NotImplementedError

    def build(self) -> list[Viewable]:
        """Return the selected item."""
        self._body = stack(*self.content())
        return [self._body]

    def on_session(self, *_: Any) -> None:
        """Show the present selection."""
        self.begin_visit()
        self._body[:] = self.content()
        for part in list(self.parts):
            part.start()

    def button(
        self,
        label: str,
        act: Callable[[], Any],
        place: pn.Column,
        *,
        variant: str = "outlined",
        refused: str = "",
    ) -> pmui.Button:
        """Return a button that asks the server for something once, and then shows the part anew.

        ``act`` runs in a thread; ``place`` is where a failure is shown, and ``refused`` is for ``Write``.
        """

        async def do() -> None:
            await asyncio.to_thread(act)
            if self.shown is not None:
                await self.shown.refresh(quietly=True)

        button = pmui.Button(label=label, variant=variant)
        write = Write(do, f"{label}: not done:", place, refused=refused, scope=self.visit)
        button.on_click(write.on_event)
        return button
