"""Uploads are parsed one at a time for each account, and give way to passes."""

from __future__ import annotations

import asyncio
import threading

import pytest

from steelyard.datasets import parsing
from steelyard.datasets.parsing import N_THREADS, parse
from steelyard.waiting import Precedence


def test_one_upload_of_an_account_at_a_time_beside_those_of_others():
    running, most = set(), []
    has_begun, first = threading.Event(), threading.Event()

    def work(name):
        running.add(name)
        most.append(sorted(running))
        has_begun.set()
        if name == "a1":
            assert first.wait(20)
        running.discard(name)
        return name

    async def upload():
        begun = [asyncio.create_task(parse(one[0], work, one)) for one in ("a1", "a2", "a3")]
        assert await asyncio.to_thread(has_begun.wait, 20)
        assert await parse("b", work, "b1") == "b1"  # beside the first, before the others
        begun[1].cancel()
        first.set()
        return await asyncio.gather(*begun, return_exceptions=True)

    first_done, cancelled, last = asyncio.run(upload())
    assert (first_done, last) == ("a1", "a3")
    assert isinstance(cancelled, asyncio.CancelledError)
    assert most == [["a1"], ["a1", "b1"], ["a3"]]
    assert parsing._last == {}
    assert len([one for one in threading.enumerate() if "parsing" in one.name]) <= N_THREADS


def test_a_failure_reaches_its_caller_and_the_next_goes_on():
    async def upload():
        failing = asyncio.create_task(parse("a", int, "no number"))
        next_ = asyncio.create_task(parse("a", int, "7"))
        with pytest.raises(ValueError, match="invalid literal"):
            await failing
        return await next_

    assert asyncio.run(upload()) == 7


def test_work_gives_way_for_a_while_and_then_goes_on():
    passes = Precedence()
    with passes.running():
        assert list(passes.after([1, 2], most_s=0.01)) == [1, 2]
        items = passes.after([3], most_s=20)
        taken = threading.Thread(target=lambda: items_taken.extend(items))
        items_taken: list[int] = []
        taken.start()
        taken.join(0.05)
        assert items_taken == []
    taken.join(20)
    assert items_taken == [3]
