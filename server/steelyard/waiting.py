"""Waiting in an event loop for an event of another thread."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar


async def wait_for_end(future: Future[Any], wait_s: float) -> bool:
    """Wait for a future of another thread, and return whether it has ended.

    A cancelled call cancels the future. Every decision waits so three times: asyncio's own ways,
    which copy the outcome into a second future and watch that with a third, cost several times as
    much.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    future.add_done_callback(functools.partial(_tell, loop, ended))
    timer = loop.call_later(wait_s, _end, ended)
    try:
        await ended
    except asyncio.CancelledError:
        future.cancel()
        raise
    finally:
        timer.cancel()
    return future.done()


def _tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None], _: Future[Any]) -> None:
    """End a wait from the thread that ended the future; the loop may be closed by now."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_end, ended)


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


Item = TypeVar("Item")
#: Seconds that work gives way for at a time: under a steady load it goes on, slowly.
_GIVE_WAY_S = 0.05


class Precedence:
    """Work that other work of the process gives way to; thread-safe.

    Threads of one process share its interpreter, so that a priority of the system's would make the
    one that has it wait for the one that is put behind.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_running = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Do work that others give way to."""
        with self._changed:
            self._n_running += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_running -= 1
                self._changed.notify_all()

    def after(self, items: Iterable[Item], most_s: float = _GIVE_WAY_S) -> Iterator[Item]:
        """Yield items of work that gives way; each once nothing runs, or after some time."""
        for item in items:
            self.give_way(most_s)
            yield item

    def give_way(self, most_s: float = _GIVE_WAY_S) -> None:
        """Return once nothing runs, or after some time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._n_running, most_s)


#: Passes of the engines of this process.
PASSES = Precedence()
