"""The judges that one process runs: together within a memory bound, the least recently used leaves."""

from __future__ import annotations

import asyncio
from typing import Protocol

from steelyard.serving.connected.breaker import RemoteFailureError
from steelyard.serving.judge.gguf import GgufHeader
from steelyard.serving.judge.memory import free_bytes, required_bytes, shortage

_RETRY_S = 5.0


class PooledJudge(Protocol):
    """A judge that shares the memory of a pool."""

    name: str
    used_at: float

    @property
    def is_idle(self) -> bool:
        """Whether it runs and no request needs it."""
        ...

    async def unload(self) -> None:
        """End its process, which gives its memory back."""
        ...


class JudgePool:
    """Running judges and the memory that each takes; for one event loop."""

    def __init__(self, memory_bytes: int = 0) -> None:
        #: Most bytes of all judges; 0 for the free memory.
        self._memory_bytes = memory_bytes
        self._lock = asyncio.Lock()
        self._bytes: dict[PooledJudge, int] = {}

    async def reserve(
        self, engine: PooledJudge, header: GgufHeader, context_tokens: int, slots: int
    ) -> None:
        """Make room for a judge that starts, or raise ``RemoteFailureError`` with the missing memory."""
        needed = required_bytes(header, context_tokens, slots)
        async with self._lock:
            while (free := self._free()) is not None and free < needed:
                idle = [other for other in self._bytes if other is not engine and other.is_idle]
                if not idle:
                    raise RemoteFailureError(
                        shortage(f"The judge {engine.name}", header, context_tokens, slots, free),
                        retry_after_s=_RETRY_S,
                    )
                await min(idle, key=lambda other: other.used_at).unload()
            self._bytes[engine] = needed

    def release(self, engine: PooledJudge) -> None:
        """Note that a judge has ended."""
        self._bytes.pop(engine, None)

    def _free(self) -> int | None:
        limits = [free_bytes()]
        if self._memory_bytes:
            limits.append(max(self._memory_bytes - sum(self._bytes.values()), 0))
        known = [limit for limit in limits if limit is not None]
        return min(known) if known else None
