"""Work that is done again and again beside what a person does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import panel as pn

#: How the error of an executor begins that takes no more work, as that of a process at its end.
_NO_MORE_WORK = "cannot schedule new futures"


class Poller:
    """Does something again and again while a page is open; one for each page.

    Parameters
    ----------
    work : callable
        A coroutine function without arguments. A turn that comes while the one before is at work
        is left out.
    period_ms : int
        Milliseconds between two turns.
    """

    def __init__(self, work: Callable[[], Awaitable[Any]], period_ms: int) -> None:
        self._work = work
        self._period_ms = period_ms
        self._callback: Any = None
        self._is_busy = False

    @property
    def is_running(self) -> bool:
        """Whether turns come."""
        return self._callback is not None

    def start(self) -> None:
        """Begin; only a page that is in a browser has turns."""
        if self._callback is None and pn.state.curdoc is not None:
            self._callback = pn.state.add_periodic_callback(self.turn, period=self._period_ms)

    def stop(self) -> None:
        """Stop; a turn at work goes to its end."""
        if self._callback is not None:
            self._callback.stop()
            self._callback = None

    async def turn(self) -> None:
        """Do it once; at the end of the process, which takes no work for its threads, do nothing."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            await self._work()
        except RuntimeError as error:
            if not str(error).startswith(_NO_MORE_WORK):
                raise
            self.stop()
        finally:
            self._is_busy = False
