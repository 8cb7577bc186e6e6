"""Whether the state can be read and written now, for any number of probes at the price of one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from sqlalchemy import Connection, text

from steelyard.errors import SteelyardError, StorageUnavailableError
from steelyard.storage.database import State

#: Seconds that a state has to be read and written, and for which having done so stands.
WAIT_S = 1.0


class StateProbe:
    """Asks a state, for one event loop alone; ``write`` writes something of which nothing stays."""

    def __init__(self, state: State, write: Callable[[Connection], None]) -> None:
        self._state, self._write = state, write
        self._asking: asyncio.Task[bool] | None = None

    async def check(self) -> None:
        """Raise ``StorageUnavailableError`` unless the state was read and written within a second."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        if not await asyncio.shield(self._asking):
            raise StorageUnavailableError(
                f"The state cannot be read or written within {WAIT_S:g} s; send requests to another "
                "server, and look at the log of this one."
            )

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(WAIT_S):
                await asyncio.gather(self._read(), self._written())
        except (SteelyardError, TimeoutError):
            return False
        return True

    async def _read(self) -> None:
        if time.monotonic() - self._state.read_at > WAIT_S:
            await self._state.look_up(_look)

    async def _written(self) -> None:
        if time.monotonic() - self._state.written_at > WAIT_S:
            await self._state.write(self._write, is_synced=False)


def _look(connection: Connection) -> None:
    connection.execute(text("SELECT 1")).close()
