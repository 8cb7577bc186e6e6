"""Waiting for events in another thread, process or server."""

from __future__ import annotations

import asyncio
import functools
import random
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_S = 60.0


def wait_until(
    is_so: Callable[[], T | None],
    seconds: float = PATIENCE_S,
    *,
    last: Callable[[], object] = lambda: None,
) -> T:
    """Return the value of a question once it is true or not empty; fail with ``last`` else.

    It asks ever less often: each call to a server takes time from the awaited work.
    """
    began = time.monotonic()
    while not (answer := is_so()):
        waited = time.monotonic() - began
        assert waited < seconds, last()
        time.sleep(min(max(waited / 10, 0.01), 0.1))
    return answer


def let_a_moment_pass(moments: random.Random, least: float, most: float) -> None:
    """Wait for some of the seconds between two, so that a kill comes at any step."""
    time.sleep(moments.uniform(least, most))


def check_that_it_stays(is_so: Callable[[], object], seconds: float) -> None:
    """Fail when a condition does not hold for these seconds."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        assert is_so()
        time.sleep(0.02)
    assert is_so()


def slowed(answer: Callable[P, T], seconds: float | Callable[[], float]) -> Callable[P, T]:
    """Return a stand-in's method as one that takes its time before it answers."""

    @functools.wraps(answer)
    def answer_late(*args: P.args, **kwargs: P.kwargs) -> T:
        time.sleep(seconds() if callable(seconds) else seconds)
        return answer(*args, **kwargs)

    return answer_late


async def until(is_so: Callable[[], T | None], seconds: float = PATIENCE_S) -> T:
    """Run the loop until a condition holds in another thread or task, and return it."""
    began = time.monotonic()
    while not (answer := is_so()):
        waited = time.monotonic() - began
        assert waited < seconds
        await asyncio.sleep(min(max(waited / 10, 0.001), 0.05))
    return answer


async def check_that_it_stays_so(is_so: Callable[[], object], seconds: float) -> None:
    """Run the loop for these seconds; fail when a condition does not hold so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                assert is_so()
                await next_turn()


async def next_turn() -> None:
    """Run the tasks that are ready on the loop."""
    await asyncio.sleep(0)


def started(
    process: subprocess.Popen[Any],
    is_so: Callable[[], T | None],
    seconds: float = PATIENCE_S,
    *,
    last: Callable[[], object] = lambda: None,
    not_yet: tuple[type[Exception], ...] = (),
) -> T:
    """Return the value of a question about a program that starts once it is true or not empty.

    ``not_yet`` is the error of the question until then. Fail with ``last`` where the program ends.
    """

    def look() -> T | None:
        with suppress(*not_yet):
            if answer := is_so():
                return answer
        assert process.poll() is None, last()
        return None

    return wait_until(look, seconds, last=last)
