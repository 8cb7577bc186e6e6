"""Waiting for what happens in another thread, process or server."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0


def wait_until(
    is_so: Callable[[], T | None],
    seconds: float = PATIENCE_S,
    *,
    last: Callable[[], object] = lambda: None,
) -> T:
    """Return what a question answers once that is true or not empty; fail with ``last`` else."""
    give_up_at = time.monotonic() + seconds
    while not (answer := is_so()):
        assert time.monotonic() < give_up_at, last()
        time.sleep(0.01)
    return answer


async def until(is_so: Callable[[], T | None], seconds: float = PATIENCE_S) -> T:
    """Run the loop until what happens in another thread or task is so, and return it."""
    give_up_at = time.monotonic() + seconds
    while not (answer := is_so()):
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.001)
    return answer


async def next_turn() -> None:
    """Run what is ready on the loop."""
    await asyncio.sleep(0)


def started(
    process: subprocess.Popen[Any],
    is_so: Callable[[], T | None],
    seconds: float = PATIENCE_S,
    *,
    last: Callable[[], object] = lambda: None,
    not_yet: tuple[type[Exception], ...] = (),
) -> T:
    """Return what a question about a program that starts answers once that is true or not empty.

    ``not_yet`` is what the question raises until then. Fail with ``last`` where the program ends.
    """

    def look() -> T | None:
        with suppress(*not_yet):
            if answer := is_so():
                return answer
        assert process.poll() is None, last()
        return None

    return wait_until(look, seconds, last=last)
