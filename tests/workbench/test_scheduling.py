"""Work without a page: it is done, with all that it starts, before its caller goes on."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit.scheduling import schedule
from support.waiting import next_turn


def test_work_that_ended_before_it_is_waited_for_is_waited_for_once():
    done = []

    async def inner() -> None:
        done.append("inner")

    async def outer() -> None:
        schedule(inner)
        # The inner work ends in this turn of the loop, and its callbacks run in the next one.
        await next_turn()
        done.append("outer")

    schedule(outer)
    assert done == ["inner", "outer"]
