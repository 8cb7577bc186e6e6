"""Work that the page's loop does after what it does now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import panel as pn


def later(work: Callable[[], Awaitable[Any]]) -> None:
    """Start work on the loop of the page; without a page, do it now.

    Parameters
    ----------
    work : callable
        Gives what is to be awaited.
    """
    if pn.state.curdoc is not None:
        pn.state.execute(work)
        return

    async def done() -> None:
        await work()

    asyncio.run(done())
