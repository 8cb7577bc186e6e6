"""When work is done: soon, once the browser has the page, or once it has drawn it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import panel as pn

#: Work under way without a page: a loop keeps no hold of its tasks itself.
_UNDER_WAY: set[asyncio.Task[None]] = set()
#: Seconds that a browser has to draw a page.
_DRAWN_S = 30.0


def schedule(work: Callable[[], Awaitable[Any]]) -> None:
    """Start work on the loop of the page; without a loop, do it now with all that it starts."""
    if pn.state.curdoc is not None:
        # Panel awaits only a recognisable coroutine function.
        pn.state.execute(partial(_do, work))
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(_settle(work))
        return
    task = loop.create_task(_do(work))
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)


async def _do(work: Callable[[], Awaitable[Any]]) -> None:
    await work()


async def _settle(work: Callable[[], Awaitable[Any]]) -> None:
    await work()
    loop = asyncio.get_running_loop()
    while mine := [task for task in _UNDER_WAY if task.get_loop() is loop]:
        await asyncio.gather(*mine)
        # They may have ended before their callbacks ran: then, from Python 3.12 on, gather waits for nothing.
        _UNDER_WAY.difference_update(mine)


async def until_shown() -> None:
    """Wait while the browser takes the page: changes meanwhile may be lost.

    Before that, changes are part of the page; after it, they are sent.
    """
    document = pn.state.curdoc
    if document is None or pn.state.loaded:
        return
    session = getattr(document.session_context, "session", None)
    if session is None or session.connection_count == 0:
        return
    await _on_load().wait()


def is_drawn() -> bool:
    """Whether the browser has drawn the page as it first came; also where there is no page."""
    document = pn.state.curdoc
    return document is None or document.session_context is None or bool(pn.state.loaded)


async def until_drawn() -> None:
    """Wait until the browser has drawn the page as it first came, if it has not yet."""
    if is_drawn():
        return
    # A page that is never drawn is dropped with its session; tasks that wait for it must end by themselves.
    with suppress(TimeoutError):
        await asyncio.wait_for(_on_load().wait(), _DRAWN_S)


def _on_load() -> asyncio.Event:
    """Return the event that is set once the browser has drawn this session's page."""
    event = asyncio.Event()
    pn.state.onload(event.set)
    return event
