"""Work that runs at intervals beside the user's actions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import panel as pn

from steelyard_workbench.kit.tasks import OneAtATime

#: How the error of an executor begins that takes no more work, as that of a process at its end.
_NO_MORE_WORK = "cannot schedule new futures"


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
