"""Calls that a test releases when it likes, and the work done meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

#: Seconds after which a test that nobody lets go on fails.
_MOST_S = 30.0


class HeldCall:
    """A function that waits to be let go on; every call is counted."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self._began, self._let_go = threading.Event(), threading.Event()
        self.n_calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.n_calls += 1
        self._began.set()
        assert self._let_go.wait(_MOST_S)
        return self._work(*args, **kwargs)

    async def until_called(self) -> None:
        """Wait until it is called."""
        assert await asyncio.to_thread(self._began.wait, _MOST_S)

    def go_on(self) -> None:
        """End the wait of its calls, now and later."""
        self._let_go.set()


class Instead:
    """Something that has other attributes in the place of a few of its own."""

    def __init__(self, of: Any, **given: Any) -> None:
        self.__dict__.update(given, _of=of)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


async def until_done(*held: asyncio.Task[Any]) -> None:
    """Wait for everything that the loop has at work, but for held calls."""
    while others := asyncio.all_tasks() - {asyncio.current_task(), *held}:
        await asyncio.gather(*others)
