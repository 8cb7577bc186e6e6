"""Waiting in an event loop for what another thread ends."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from concurrent.futures import Future
from typing import Any


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
