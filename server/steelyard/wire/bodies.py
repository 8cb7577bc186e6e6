"""Work on a request that does not hold up the requests beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Bodies longer than this are worked on by a thread; a shorter one costs less than the thread's turn.
INLINE_BYTES = 16 * 1024


async def read_body(read: Callable[[bytes], T], body: bytes) -> T:
    """Return ``read(body)``, off the event loop when the body is long."""
    return await work_on(read, body, is_long=len(body) > INLINE_BYTES)


async def work_on(work: Callable[..., T], *what: object, is_long: bool) -> T:
    """Return ``work(*what)``, off the event loop when it is long."""
    return await asyncio.to_thread(work, *what) if is_long else work(*what)
