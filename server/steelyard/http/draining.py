"""Stopping without losing what runs: which requests are in flight, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from steelyard.errors import EngineUnavailableError


class Drain:
    """The requests in flight of one application, and whether it is stopping; for its event loop alone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._cut_off: set[asyncio.Task[Any]] = set()
        self.is_leaving = False
        self.is_stopping = False

    def __len__(self) -> int:
        """Return the number of requests in flight."""
        return len(self._tasks)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count the running task as a request in flight."""
        if self.is_stopping:
            raise stopping()
        task = asyncio.current_task()
        if task is None:  # never so in a coroutine
            yield
            return
        self._tasks.add(task)
        self._is_empty.clear()
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._cut_off:
                raise
            task.uncancel()
            raise stopping() from None
        finally:
            self._cut_off.discard(task)
            self._tasks.discard(task)
            if not self._tasks:
                self._is_empty.set()

    async def finish(self, timeout_s: float) -> None:
        """Refuse what comes, wait for what runs, and cut that off after the time given."""
        self.is_stopping = True
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_empty.wait()
        except TimeoutError:
            self._cut_off = set(self._tasks)
            for task in self._cut_off:
                task.cancel()


def stopping() -> EngineUnavailableError:
    """Return the refusal of a server that is stopping."""
    return EngineUnavailableError(
        "The server is stopping; send it again in a moment.", retry_after_s=1.0
    )
