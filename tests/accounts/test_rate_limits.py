"""Counters of the last minute: exact in time, shared between processes, bounded in memory."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import pytest

from steelyard.accounts.rate_limits import WINDOW_S, RateWindows


class Clock:
    def __init__(self, now: float = 1_000_000 * WINDOW_S):
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "file"])
def windows(request, tmp_path, clock):
    path = tmp_path / "rates.sqlite" if request.param == "file" else None
    counting = RateWindows(path, clock=clock)
    yield counting
    counting.close()


def test_a_minute_has_room_for_its_limit(windows):
    assert [windows.take("requests", "a", 3) for _ in range(3)] == [None] * 3
    assert windows.take("requests", "a", 3) > 0


def test_callers_and_kinds_are_counted_apart(windows):
    assert windows.take("requests", "a", 1) is None
    assert windows.take("requests", "b", 1) is None
    assert windows.take("tokens", "a", 1) is None
    assert windows.take("requests", "a", 1) is not None


@pytest.mark.parametrize("start", [0, 13, 59.5])
@pytest.mark.parametrize(("limit", "cost"), [(1, 1), (7, 1), (600, 1), (1000, 300), (10, 10)])
def test_after_the_wait_there_is_room_and_not_long_before(windows, clock, start, limit, cost):
    clock.now += start
    while (wait_s := windows.take("requests", "a", limit, cost)) is None:
        pass
    clock.now += wait_s - 0.002
    assert windows.take("requests", "a", limit, cost) is not None
    clock.now += 0.003
    assert windows.take("requests", "a", limit, cost) is None


def test_the_rate_holds_over_many_minutes(windows, clock):
    taken = []
    for _ in range(6000):
        clock.now += 0.1
        if windows.take("requests", "a", 60) is None:
            taken.append(clock.now)
    assert len(taken) == pytest.approx(600, rel=0.12)


def test_nothing_is_counted_of_a_refusal(windows, clock):
    windows.take("requests", "a", 10, 10)
    for _ in range(100):
        assert windows.take("requests", "a", 10) is not None
    clock.now += 2 * WINDOW_S
    assert windows.take("requests", "a", 10, 10) is None


def test_a_flood_of_callers_is_bounded(clock):
    windows = RateWindows(clock=clock, max_callers=500)
    for number in range(20_000):
        windows.take("public", f"address {number}", 5)
    assert len(windows) <= 550
    windows.close()


def test_the_busiest_are_remembered_in_a_flood(clock):
    windows = RateWindows(clock=clock, max_callers=100)
    for _ in range(5):
        windows.take("public", "busy", 5)
    for number in range(5000):
        windows.take("public", f"address {number}", 5)
    assert windows.take("public", "busy", 5) is not None
    windows.close()


def test_the_idle_are_forgotten(clock):
    windows = RateWindows(clock=clock, max_callers=100)
    for number in range(50):
        windows.take("requests", f"a{number}", 5)
    clock.now += 3 * WINDOW_S
    for _ in range(30):
        windows.take("requests", "b", 100)
    assert len(windows) == 1
    windows.close()


def test_a_clock_that_is_set_back_forgives_nothing(windows, clock):
    windows.take("requests", "a", 1)
    clock.now -= WINDOW_S
    assert windows.take("requests", "a", 1) is not None


def test_a_clock_set_back_far_locks_no_caller_out(windows, clock):
    windows.take("requests", "a", 1)
    windows.take("requests", "b", 1)
    clock.now -= 24 * 3_600
    assert windows.take("requests", "a", 1) is None
    assert windows.take("requests", "a", 1) <= 2 * WINDOW_S
    clock.now += 3 * WINDOW_S
    assert windows.take("requests", "a", 1) is None


def test_threads_share_one_minute(windows):
    passed = []

    def work():
        passed.extend(windows.take("requests", "a", 100) is None for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 100


def test_processes_share_one_minute(tmp_path):
    path = tmp_path / "rates.sqlite"
    clock = Clock()
    program = (
        "import sys, pathlib\n"
        "from steelyard.accounts.rate_limits import RateWindows\n"
        f"w = RateWindows(pathlib.Path(sys.argv[1]), clock=lambda: {clock.now})\n"
        "print(sum(w.take('requests', 'a', 100) is None for _ in range(80)))\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    counts = [int(process.communicate(timeout=60)[0]) for process in running]
    assert sum(counts) == 100


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b""])
def test_a_file_that_cannot_be_read_is_begun_anew(tmp_path, content):
    path = tmp_path / "rates.sqlite"
    path.write_bytes(content)
    windows = RateWindows(path)
    assert windows.take("requests", "a", 1) is None
    windows.close()


def test_counters_that_cannot_be_written_let_requests_pass(caplog):
    windows = RateWindows()
    windows.close()
    assert windows.take("requests", "a", 1) is None
    assert "not counted" in caplog.text


def test_waits_are_rounded_up(windows, clock):
    clock.now += math.pi
    windows.take("requests", "a", 3)
    windows.take("requests", "a", 3, 2)
    wait_s = windows.take("requests", "a", 3)
    assert wait_s == round(wait_s, 3) > 0


def test_processes_that_start_together_all_open_the_file(tmp_path):
    opened: list[RateWindows] = []
    failures: list[Exception] = []

    def open_it(path, together):
        together.wait()
        try:
            opened.append(RateWindows(path))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    for number in range(20):
        together = threading.Barrier(8)
        openers = [
            threading.Thread(target=open_it, args=(tmp_path / f"{number}.sqlite", together))
            for _ in range(8)
        ]
        for opener in openers:
            opener.start()
        for opener in openers:
            opener.join()
    for windows in opened:
        windows.close()
    assert failures == []
    assert len(opened) == 160
