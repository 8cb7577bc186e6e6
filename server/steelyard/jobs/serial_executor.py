"""Long work in threads, one at a time, so that it leaves threads and memory for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SerialExecutor:
    """Admits one caller at a time; the others wait, first come, first served."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Start work when it is its turn, and return its result.

        Abandoned work still has its thread, and its turn, until it ends.
        """
        async with self._lock:
            working = asyncio.ensure_future(start())
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                await asyncio.wait({working})
                raise
