"""Asynchronous work of a page: when it starts, when it is dropped, and where its failure is shown.

Three kinds differ in the effect of a second start, and of leaving the page:

===============  ==================  =====================
kind             started again       its scope ends
===============  ==================  =====================
``Task``         the latest wins     it is dropped
``OneAtATime``   nothing happens     it is dropped
``Write``        nothing happens     it goes on to its end
===============  ==================  =====================

Work that is dropped stops at the ``await`` it is in: nothing after that is done, so that work needs
no checks of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

import panel as pn
import param

from steelyard_workbench.kit import corner
from steelyard_workbench.kit.problems import LackingError, Problem, problem_of, refused_fields
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.views import failed

P = ParamSpec("P")
T = TypeVar("T")
Work: TypeAlias = Coroutine[Any, Any, T]
#: How the error of an executor begins that takes no more work, as that of a process at its end.
_NO_MORE_WORK = "cannot schedule new futures"


class Scope:
    """The owner of work, such as one visit of a page; it ends with its parent."""

    def __init__(self, within: Scope | None = None) -> None:
        self._within = within
        self._is_over = False

    @property
    def has_ended(self) -> bool:
        """Whether its work is dropped, and none of it is started any more, but writes."""
        return self._is_over or (self._within is not None and self._within.has_ended)

    def end(self) -> None:
        """Drop the work that belongs to it."""
        self._is_over = True

    def say_if_ended(self, text: str) -> bool:
        """Whether it has ended; if so, say in a corner that the action is done."""
        if self.has_ended:
            corner.say(text)
        return self.has_ended


class Task(param.Parameterized, Generic[P, T]):
    """Work that is started again and again, of which only the latest run is wanted.

    A failure is shown under ``title``, as ``Could not load the rows.``, in the place of the contents
    of ``place``, with a button that starts the work again where it ``can_retry``, and with that of
    the label ``refused`` disabled where a permission is missing; or ``on_failure`` shows it, and
    returns the problem of a write. Without either it is raised. ``scope`` is the visit that the work
    belongs to. ``fields`` of the request are marked where they are refused.
    """

    is_running = param.Boolean(default=False, doc="Whether a run is under way.")

    def __init__(
        self,
        work: Callable[P, Work[T]],
        title: str = "",
        place: Any = None,
        *,
        can_retry: bool = True,
        refused: str = "",
        on_failure: Callable[[Exception], Problem | None] | None = None,
        scope: Scope | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._fields, self._lacking = fields or {}, None
        self._work, self._title, self._place = work, title, place
        self._can_retry, self._refused, self._on_failure = can_retry, refused, on_failure
        self._run: object = None
        self.scope = scope or Scope()

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Do the work and return its result; ``None`` if it was dropped or has failed."""
        if self.scope.has_ended:
            return None
        run = self._run = object()
        self.is_running = True
        self._mark(())

        def is_current() -> bool:
            return run is self._run and not self.scope.has_ended

        try:
            return await _WhileWanted(self._work(*args, **kwargs), is_current)
        except Exception as error:  # noqa: BLE001  every failure is shown
            self._fail(error)
            return None
        finally:
            if run is self._run:
                self.drop()

    def start(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Do the work without waiting for it."""
        schedule(lambda: self(*args, **kwargs))

    def on_event(self, *_: Any) -> None:
        """Do the work, which takes no arguments, whatever the event is."""
        schedule(self)

    def drop(self) -> None:
        """Stop the run that is under way at the ``await`` it is in."""
        self._run = None
        self.is_running = False

    def _mark(self, names: Sequence[str], lacking: Any = None) -> None:
        """Mark the fields that are refused, and the one that lacks something, and no others."""
        if self._lacking is not None:
            self._lacking.error_state = False
        for name, field in self._fields.items():
            field.error_state = name in names
        self._lacking = lacking
        if lacking is not None:
            lacking.error_state = True

    def _fail(self, error: Exception) -> Problem | None:
        self._mark(refused_fields(error))
        if self._on_failure is not None:
            return self._on_failure(error)
        if isinstance(error, LackingError):
            self._mark((), error.field)
        if self._place is None:
            raise error
        problem = problem_of(error, self._title)
        self._place[:] = [
            failed(problem, self.on_event if self._can_retry else None, self._refused)
        ]
        return problem


class OneAtATime(Task[P, T]):
    """Work that is not started again while it runs."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Do the work, unless it is being done."""
        return None if self.is_running else await super().__call__(*args, **kwargs)


class Write(Task[P, T]):
    """Something sent to the server once, however often it is clicked; it is never dropped.

    A failure is said in a corner too once its scope has ended: its place is out of sight then.
    """

    def __init__(
        self, work: Callable[P, Work[T]], title: str = "", place: Any = None, **options: Any
    ) -> None:
        super().__init__(work, title, place, can_retry=False, **options)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Do the work, unless it is being done."""
        if self.is_running:
            return None
        # A second click may have been on its way before the browser heard of the first.
        self.is_running = True
        self._mark(())
        try:
            return await self._work(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  every failure is shown
            problem = self._fail(error)
            if problem is not None and self.scope.has_ended:
                corner.say_failure(f"{problem.title} {problem.message}")
            return None
        finally:
            self.is_running = False


class _WhileWanted(Generic[T]):
    """Drives a coroutine to its end, or to the first ``await`` after which it is not wanted."""

    def __init__(self, work: Work[T], is_current: Callable[[], bool]) -> None:
        self._work, self._is_wanted = work, is_current

    def __await__(self) -> Generator[Any, Any, T | None]:
        error: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as done:
                return done.value
            error = None
            try:
                yield awaited
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as raised:  # noqa: BLE001  the awaited call failed: the work handles it
                error = raised
            # A cancellation may be that of a timeout within the work.
            if not self._is_wanted() and not isinstance(error, asyncio.CancelledError):
                self._work.close()
                return None


class Poller:
    """Does something every ``period_ms`` milliseconds while a page is open; one for each page."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Any]], period_ms: int) -> None:
        self._period_ms = period_ms
        self._callback: Any = None
        self.turn = OneAtATime(work, on_failure=self._end)

    @property
    def is_running(self) -> bool:
        """Whether turns come."""
        return self._callback is not None

    def start(self) -> None:
        """Begin; only a page that is in a browser has turns."""
        if self._callback is None and pn.state.curdoc is not None:
            self._callback = pn.state.add_periodic_callback(self._turn, period=self._period_ms)

    def stop(self) -> None:
        """Stop; a turn at work goes to its end."""
        if self._callback is not None:
            self._callback.stop()
            self._callback = None

    async def _turn(self) -> None:
        await self.turn()

    def _end(self, error: Exception) -> None:
        """Do nothing more at the end of the process, which takes no work for its threads."""
        if not str(error).startswith(_NO_MORE_WORK):
            raise error
        self.stop()
