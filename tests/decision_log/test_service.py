"""Summaries of decisions beside other reads: one at a time, whatever becomes of who asked."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing

import pytest

from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.decision_log import service as decision_log
from steelyard.decision_log.service import DecisionLog
from steelyard.decision_log.wire import DecisionLogQuery, DecisionSummaryQuery
from steelyard.storage import open_state
from support.waiting import check_that_it_stays_so, until

ME = Caller(LOCAL_ACCOUNT, None, "full", "test")
#: More than there are threads to read with.
N_SUMMARIES = 6


class SlowSums:
    """Adds up a window for as long as a test wants; counts the windows and those at once."""

    def __init__(self):
        self.may_end = threading.Event()
        self.n_begun = self.n_running = self.most_at_once = 0
        self._lock = threading.Lock()

    def __call__(self, *_):
        with self._lock:
            self.n_begun += 1
            self.n_running += 1
            self.most_at_once = max(self.most_at_once, self.n_running)
        assert self.may_end.wait(60)
        with self._lock:
            self.n_running -= 1

    async def begun(self, n=1):
        await until(lambda: self.n_begun >= n)


@pytest.fixture
def sums(monkeypatch):
    sums = SlowSums()
    monkeypatch.setattr(decision_log, "_add_up", sums)
    yield sums
    sums.may_end.set()


@pytest.fixture
def log(tmp_path, sums):
    with closing(open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")) as state:
        yield DecisionLog(state, retention_days=30)
        sums.may_end.set()


def test_summaries_leave_readers_to_others(log, sums):
    async def ask():
        asked = [log.summary(ME, DecisionSummaryQuery()) for _ in range(N_SUMMARIES)]
        summaries = [asyncio.create_task(one) for one in asked]
        try:
            await sums.begun()
            page = await asyncio.wait_for(log.page(ME, DecisionLogQuery()), 10)
            assert (page.data, sums.n_begun) == ([], 1)
        finally:
            sums.may_end.set()
        return await asyncio.gather(*summaries)

    assert [one.answers for one in asyncio.run(ask())] == [0] * N_SUMMARIES
    assert (sums.n_begun, sums.most_at_once) == (N_SUMMARIES, 1)


def test_a_summary_of_a_gone_caller_ends_its_turn(log, sums):
    async def ask():
        first, second, third = (
            asyncio.create_task(log.summary(ME, DecisionSummaryQuery())) for _ in range(3)
        )
        await sums.begun()
        for gone in (first, second):
            gone.cancel()
        await asyncio.wait({second})
        await check_that_it_stays_so(lambda: (sums.n_begun, first.done()) == (1, False), 0.1)
        sums.may_end.set()
        await third
        assert first.cancelled()

    asyncio.run(ask())
    # Who left while others were added up was not added up at all.
    assert (sums.n_begun, sums.most_at_once) == (2, 1)
