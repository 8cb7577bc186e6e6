"""Threads that run a function regularly, such as the passing of time in lineage, and sweeps."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from steelyard.errors import SteelyardError

_log = logging.getLogger(__name__)


class Ticker:
    """Calls something at the start and after every interval, on a thread of its own.

    ``explain`` turns an error into its explanation: a state's, for work with it.
    """

    def __init__(
        self,
        tick: Callable[[], None],
        *,
        name: str,
        failure: str,
        explain: Callable[[Exception], Exception],
        interval_s: float = 1.0,
    ) -> None:
        self._tick = tick
        self._explain = explain
        self._failure = failure
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Call it now, or again once the call under way is done."""
        self._woken.set()

    def close(self) -> None:
        """Stop, once the tick under way is done."""
        self._stopping.set()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                self._tick()
            except Exception as error:  # noqa: BLE001  the next tick may work
                explained = self._explain(error)
                if isinstance(explained, SteelyardError):
                    _log.warning("%s: %s", self._failure, explained.message)
                else:
                    _log.exception("%s.", self._failure)
            if not self._stopping.is_set():
                self._woken.wait(self._interval_s)
