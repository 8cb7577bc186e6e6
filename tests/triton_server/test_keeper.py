"""Keeping a host running, with a host and a clock under a test's control."""

from __future__ import annotations

import threading

import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.triton import keeper
from steelyard.triton.keeper import SILENCE_S, keep_running


class Host:
    """Runs until stopped; ``failures`` starts of it fail."""

    def __init__(self, stopping: Stopping) -> None:
        self.stopping = stopping
        self.is_running = True
        self.answers = True
        self.failures = 0
        self.events: list[str] = []

    def is_live(self) -> bool:
        return self.answers

    def start(self) -> None:
        if self.failures:
            self.failures -= 1
            self.events.append("failed")
            raise EngineUnavailableError("It does not start.")
        self.events.append("started")
        self.is_running = self.answers = True

    def kill(self) -> None:
        self.events.append("killed")
        self.is_running = False


class Stopping(threading.Event):
    """Moves the clock on without waiting, and is set at the end of a script of looks."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.waits: list[float] = []
        self.script: dict[int, object] = {}
        self.last = 400

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        self.now += timeout
        act = self.script.get(len(self.waits))
        if act is not None:
            act()
        return self.is_set() or len(self.waits) >= self.last


@pytest.fixture
def stopping() -> Stopping:
    return Stopping()


@pytest.fixture
def host(stopping) -> Host:
    return Host(stopping)


def run(host: Host, stopping: Stopping, **further) -> list[str]:
    lines: list[str] = []
    keep_running(host, stopping, lines.append, clock=lambda: stopping.now, **further)
    return lines


def test_one_that_runs_is_left_alone(host, stopping):
    looks: list[None] = []
    assert run(host, stopping, each_look=lambda: looks.append(None)) == []
    assert host.events == []
    assert len(looks) == stopping.last - 1


def test_one_that_ends_is_started_again(host, stopping):
    stopping.script[3] = lambda: setattr(host, "is_running", False)
    assert run(host, stopping) == [
        "Triton ended; starting it again in 0.2 s.",
        "Triton is ready again.",
    ]
    assert host.events == ["started"]


def test_pauses_grow_while_it_does_not_start(host, stopping):
    host.is_running, host.failures = False, 9
    lines = run(host, stopping)
    pauses = [wait for wait in stopping.waits if wait != keeper.LOOK_S]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10, 10]
    assert lines.count("It does not start.") == 9
    assert host.events[-1] == "started"


def test_one_that_stays_silent_is_ended_and_started_again(host, stopping):
    stopping.script[8] = lambda: setattr(host, "answers", False)
    lines = run(host, stopping)
    assert lines[0].startswith("Triton did not answer for")
    assert host.events[:2] == ["killed", "started"]
    assert stopping.now > SILENCE_S


def test_it_stops_between_an_end_and_a_start(host, stopping):
    host.is_running = False
    stopping.last = 2
    run(host, stopping)
    assert host.events == []
