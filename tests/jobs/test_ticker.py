"""The ticker of lineage goes on whatever a tick does, and stops on request."""

from __future__ import annotations

import threading

from steelyard.errors import StorageUnavailableError
from steelyard.jobs.ticker import Ticker


def test_it_ticks_again_after_a_failure_and_stops():
    failures = [StorageUnavailableError("The disk is full."), RuntimeError("a fault")]
    ticked = threading.Event()

    def tick():
        if failures:
            raise failures.pop()
        clock._interval_s = 3600  # from now on only a wake makes it tick
        ticked.set()

    others = set(threading.enumerate())
    clock = Ticker(
        tick,
        name="steelyard-test",
        failure="Could not tick",
        explain=lambda error: error,
        interval_s=0.001,
    )
    for _ in range(3):
        assert ticked.wait(timeout=60)
        ticked.clear()
        clock.wake()
    clock.close()
    ticked.clear()
    left = set(threading.enumerate()) - others
    assert not any(thread.name == "steelyard-test" for thread in left)
