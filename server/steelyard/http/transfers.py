"""How many bytes of long bodies may be in memory at once, by direction and by account."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from sanic import Request

from steelyard.caller import Caller
from steelyard.errors import QueueFullError
from steelyard.memory import trim_memory

#: Bodies up to this many bytes are not counted: connections bound them.
FREE_BYTES = 64 * 1024
#: Bytes of bodies that are received, and of rows that are sent, at once.
RECEIVED_BYTES, SENT_BYTES = 64 * 1024 * 1024, 128 * 1024 * 1024
#: Seconds to wait for a turn, and how many requests may.
WAIT_S, MAX_WAITING = 5.0, 256
#: Seconds from a transfer's end until free memory goes back to the system.
_TRIM_AFTER_S = 1.0


@dataclass(slots=True, eq=False)
class _Waiting:
    account: str
    n_bytes: int
    turn: asyncio.Future[None]


class Transfers:
    """A bound on bytes, of which no account gets more than half; for one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._share = limit // 2
        self._held: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []
        self._trimming: asyncio.TimerHandle | None = None
        self._trimmer: asyncio.Future[None] | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes that are held."""
        return self._held.total()

    async def hold(self, request: Request, n_bytes: int) -> None:
        """Wait for room, and keep it until the request ends."""
        caller: Caller = request.ctx.caller
        taken = await self.take(caller.account_id, n_bytes)
        request.ctx.held.callback(self.give_back, caller.account_id, taken)

    async def take(self, account: str, n_bytes: int) -> int:
        """Wait for room; return the bytes to give back, at most an account's share."""
        n_bytes = min(n_bytes, self._share)
        if self._fits(account, n_bytes):
            self._held[account] += n_bytes
            return n_bytes
        if len(self._waiting) >= MAX_WAITING:
            raise _full()
        entry = _Waiting(account, n_bytes, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(WAIT_S):
                await entry.turn
        except BaseException as error:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif entry.turn.done() and not entry.turn.cancelled():
                self.give_back(account, n_bytes)  # its turn came as it gave up
            if isinstance(error, TimeoutError):
                raise _full() from None
            raise
        return n_bytes

    def give_back(self, account: str, n_bytes: int) -> None:
        """Make room, and let in who fits now, in the order of arrival."""
        self._held[account] -= n_bytes
        if self._held[account] <= 0:
            del self._held[account]
        for entry in tuple(self._waiting):
            if not entry.turn.done() and self._fits(entry.account, entry.n_bytes):
                self._waiting.remove(entry)
                self._held[entry.account] += entry.n_bytes
                entry.turn.set_result(None)
        if self._trimming is None:
            self._trimming = asyncio.get_running_loop().call_later(_TRIM_AFTER_S, self._trim)

    def _fits(self, account: str, n_bytes: int) -> bool:
        is_within_share = self._held[account] + n_bytes <= self._share
        return is_within_share and self.n_bytes + n_bytes <= self._limit

    def _trim(self) -> None:
        self._trimming = None
        self._trimmer = asyncio.get_running_loop().run_in_executor(None, trim_memory)


def _full() -> QueueFullError:
    return QueueFullError(
        "Too many long bodies are being sent or received; send the request again after Retry-After."
    )
