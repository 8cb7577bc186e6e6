"""Reading a request's body without holding up the requests beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Bodies longer than this are read on a thread; a shorter one costs less than the thread's turn.
_INLINE_BYTES = 16 * 1024


async def read_body(read: Callable[[bytes], T], body: bytes) -> T:
    """Give ``read(body)``, off the event loop when the body is long; raises what ``read`` does."""
    if len(body) > _INLINE_BYTES:
        return await asyncio.to_thread(read, body)
    return read(body)
