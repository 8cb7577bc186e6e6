"""Where uploads are parsed: on few threads, one upload of an account at a time."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Uploads that are parsed at once.
N_THREADS = 2
_pool = ThreadPoolExecutor(N_THREADS, thread_name_prefix="steelyard-parsing")
#: The last work of each account with any, in an event loop.
_last: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Task[None]] = {}


async def parse(
    account: str,
    work: Callable[Arguments, Result],
    *arguments: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Do an account's work on a thread, after the account's earlier work."""
    loop = asyncio.get_running_loop()
    run = functools.partial(contextvars.copy_context().run, work, *arguments, **options)
    place, before = (loop, account), _last.get((loop, account))
    result: asyncio.Future[Result] = loop.create_future()

    async def take_turn() -> None:
        if before is not None:
            await asyncio.wait([before])
        if result.cancelled():
            return
        try:
            done = await loop.run_in_executor(_pool, run)
        except BaseException as error:  # noqa: BLE001  the waiting caller gets it
            if not result.cancelled():
                result.set_exception(error)
        else:
            if not result.cancelled():
                result.set_result(done)

    task = _last[place] = asyncio.create_task(take_turn(), name="steelyard-parse")

    def forget(ended: asyncio.Task[None]) -> None:
        if _last.get(place) is ended:
            del _last[place]

    task.add_done_callback(forget)
    return await result
