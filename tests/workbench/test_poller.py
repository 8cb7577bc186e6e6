"""Work done again and again: turns do not overlap, and the end of the process is quiet."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit.tasks import Poller
from support.waiting import next_turn


def failing(text):
    async def work():
        raise RuntimeError(text)

    return Poller(work, 1000)


def test_a_turn_that_comes_while_one_is_at_work_is_left_out():
    done = []

    async def both():
        go_on = asyncio.Event()

        async def work():
            done.append(1)
            await go_on.wait()

        poller = Poller(work, 1000)
        first = asyncio.create_task(poller.turn())
        await next_turn()
        await poller.turn()
        go_on.set()
        await first
        await poller.turn()

    asyncio.run(both())
    assert len(done) == 2


def test_a_process_at_its_end_is_not_reported():
    poller = failing("cannot schedule new futures after interpreter shutdown")
    asyncio.run(poller.turn())
    assert not poller.is_running


def test_any_other_failure_is_raised():
    with pytest.raises(RuntimeError, match="no such thing"):
        asyncio.run(failing("no such thing").turn())
