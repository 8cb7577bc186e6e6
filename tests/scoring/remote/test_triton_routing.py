"""Where passes go: to the remote engine, here when it fails, and back when a probe finds it well."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from steelyard import errors
from steelyard.scoring.cancellation import only_while
from steelyard.scoring.engine import Tensors
from steelyard.scoring.remote.routed import MAX_FAILURES, PROBE_S, RoutedEngine, probe_inputs
from support.models.remote_engines import LocalEngine, Remote, gone, run_pass

OUTPUTS = ("logits", "pooled")


class World:
    """A routed engine over a remote and a local one, with a clock set by hand."""

    def __init__(
        self,
        remote: Remote | None,
        *,
        falls_back: bool = True,
        local: LocalEngine | None = None,
    ) -> None:
        self.remote = remote
        self.local = local or LocalEngine()
        self.n_loads = 0
        self.now = 1000.0
        self.inputs = probe_inputs()
        self.engine = RoutedEngine(
            "base", self._load, remote, falls_back=falls_back, clock=lambda: self.now
        )

    def _load(self) -> LocalEngine:
        self.n_loads += 1
        if self.local.is_closed:
            self.local = LocalEngine()
        return self.local

    def run(self) -> None:
        """Run a pass; its answer is always the right one."""
        found = self.engine.run(self.inputs, OUTPUTS)
        for name, value in run_pass(self.inputs, OUTPUTS).items():
            np.testing.assert_array_equal(found[name], value)

    def later(self, seconds: float = PROBE_S) -> None:
        """Move the clock on, and probe."""
        self.now += seconds
        self.engine.step()

    @property
    def place(self) -> str:
        return self.engine.status.place


@pytest.fixture
def world():
    world = World(Remote())
    world.engine.step()
    assert world.place == "triton"
    yield world
    world.engine.close()
    assert world.local.is_closed
    assert world.remote.is_closed


def test_passes_go_to_the_remote_engine(world):
    before = world.local.n_passes
    world.run()
    assert world.local.n_passes == before
    assert world.engine.status.passes == {"triton": 1}
    assert world.engine.status.reason is None


def test_a_pass_that_fails_is_answered_here_and_the_next_is_sent_again(world):
    world.remote.failing = gone
    world.run()
    assert world.engine.status.faults == {"engine_unavailable": 1}
    assert world.place == "triton"
    world.remote.failing = None
    world.run()
    assert world.engine.status.passes == {"in-process": 1, "triton": 1}


def test_a_pass_of_a_gone_caller_is_not_sent_and_is_no_fault_of_the_server(world):
    before = (world.remote.n_passes, world.local.n_passes)
    with only_while(lambda: world.remote.n_passes < before[0] + 2):
        world.run()
        world.run()
        for _ in range(MAX_FAILURES):
            with pytest.raises(errors.DeadlineExceededError, match="not scored by its deadline"):
                world.run()
    assert (world.remote.n_passes, world.local.n_passes) == (before[0] + 2, before[1])
    assert world.place == "triton"
    assert world.engine.status.faults == {}
    world.run()


def test_failures_in_a_row_end_the_traffic_and_traffic_is_not_the_probe(world):
    world.remote.failing = gone
    for _ in range(MAX_FAILURES):
        world.run()
    assert world.place == "in-process"
    assert world.engine.status.reason == "It is not there."
    n_calls = len(world.remote.calls)
    for _ in range(10):
        world.run()
    assert len(world.remote.calls) == n_calls


def test_it_comes_back_by_itself(world):
    world.remote.failing = gone
    world.later()
    assert world.place == "in-process"
    world.later()
    assert world.place == "in-process"
    world.remote.failing = None
    world.later()
    assert world.place == "triton"
    assert world.engine.status.n_changes == 3
    world.run()


def test_a_failing_server_gets_ever_fewer_passes(world):
    pauses = []
    for _ in range(5):
        world.remote.failing = gone
        world.engine.step()
        world.remote.failing = None
        started = world.now
        while world.place != "triton":
            world.later()
        pauses.append(world.now - started)
    assert pauses == [1, 2, 4, 8, 16]
    world.now += 60
    world.remote.failing = gone
    world.engine.step()
    world.remote.failing = None
    world.later()
    assert world.place == "triton"


def test_a_slow_check_counts_and_a_success_between_forgives(world):
    def late(call: str) -> None:
        if call == "check":
            raise errors.DeadlineExceededError("It is late.")

    world.remote.failing = late
    for _ in range(MAX_FAILURES - 1):
        world.later()
    world.run()
    for _ in range(MAX_FAILURES - 1):
        world.later()
    assert world.place == "triton"
    world.later()
    assert world.place == "in-process"
    assert world.remote.calls[-1] == "interrupt"


def test_changes_are_logged_once(world, caplog):
    caplog.set_level(logging.INFO, "steelyard.scoring.remote.routed")
    world.remote.failing = gone
    for _ in range(5):
        world.run()
        world.later()
    world.remote.failing = None
    for _ in range(5):
        world.later(3)
        world.run()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "It is not there. They run in this process" in caplog.messages[0]
    assert caplog.messages[1] == "Passes of base run in triton://one:1."


def test_other_weights_are_never_used(caplog):
    world = World(Remote(weight=1.5))
    world.engine.step()
    assert world.place == "in-process"
    assert "steelyard triton export" in world.engine.status.reason
    world.run()
    world.now += 60
    world.engine.step()
    assert world.place == "in-process"
    assert len(caplog.records) == 1
    world.engine.close()


def test_without_fallback_failures_are_raised_and_nothing_is_loaded():
    world = World(Remote(), falls_back=False)
    with pytest.raises(errors.EngineUnavailableError, match="not there yet"):
        world.run()
    world.engine.step()
    world.run()
    world.remote.failing = gone
    for _ in range(5):
        with pytest.raises(errors.EngineUnavailableError, match="It is not there"):
            world.run()
    assert world.engine.status.place == "none"
    assert world.n_loads == 0
    world.remote.is_loading = True
    with pytest.raises(errors.ModelWarmingError):
        world.run()
    world.engine.close()
    with pytest.raises(errors.EngineUnavailableError, match="closed"):
        world.run()


def test_passes_change_over_and_end_where_they_began(world):
    old, new = world.remote, Remote("triton://two:2")
    old.may_answer.clear()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(world.run)
        assert old.entered.wait(30)
        world.engine.attach(new)
        world.engine.step()
        assert world.engine.status.remote == "triton://two:2"
        world.run()
        assert new.n_passes == 2  # the comparison's, and ours
        assert not old.is_closed
        assert "interrupt" not in old.calls
        old.may_answer.set()
        running.result(30)
    assert old.is_closed
    world.remote = new


def test_passes_stay_where_they_are_until_the_new_engine_can_be_used(world):
    old, new = world.remote, Remote("triton://two:2")
    new.failing = gone
    world.engine.attach(new)
    world.engine.step()
    world.run()
    assert (world.place, world.engine.status.reason) == ("triton", "It is not there.")
    newer = Remote("triton://three:3")
    world.engine.attach(newer)
    assert new.is_closed
    assert not old.is_closed
    world.engine.step()
    assert old.is_closed
    world.run()
    world.remote = newer


def test_an_old_engine_that_fails_before_the_new_can_be_used_is_let_go_of(world):
    old, new = world.remote, Remote("triton://two:2")
    new.failing = old.failing = gone
    world.engine.attach(new)
    world.later()
    assert world.place == "in-process"
    assert old.is_closed
    new.failing = None
    world.later()
    assert world.place == "triton"
    world.remote = new


def test_changing_over_to_this_process_and_back():
    world = World(Remote(), falls_back=False)
    world.engine.step()
    old = world.remote
    world.engine.attach(None)
    assert old.is_closed
    assert world.n_loads == 1
    assert world.engine.status.remote is None
    world.run()
    new = Remote("triton://two:2")
    world.engine.attach(new)
    world.run()
    world.engine.step()
    world.run()
    assert world.engine.status.passes == {"in-process": 2, "triton": 1}
    world.engine.close()
    assert new.is_closed


@pytest.mark.parametrize("begins_here", [True, False])
def test_without_fallback_nothing_is_kept_here_after_a_change_to_a_server(begins_here):
    world = World(None if begins_here else Remote(), falls_back=False)
    world.engine.step()
    world.engine.attach(None)
    world.run()
    local, new = world.local, Remote("triton://two:2")
    world.engine.attach(new)
    new.failing = gone
    world.later()
    world.run()  # until the server can be used, passes stay
    assert not local.is_closed
    new.failing = None
    world.later()
    assert local.is_closed
    new.failing = gone
    for _ in range(MAX_FAILURES + 1):
        with pytest.raises(errors.EngineUnavailableError, match="It is not there"):
            world.run()
    assert world.place == "none"
    world.engine.attach(None)
    world.run()
    assert (world.n_loads, world.local is local) == (2, False)
    world.engine.close()
    assert world.local.is_closed


class HeldOnce(LocalEngine):
    """Its first pass waits until it may answer."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.may_answer = threading.Event(), threading.Event()

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        if not self.entered.is_set():
            self.entered.set()
            assert self.may_answer.wait(30)
        return super().run(inputs, outputs)


def test_without_fallback_passes_under_way_here_end_here():
    local, new = HeldOnce(), Remote("triton://two:2")
    world = World(None, falls_back=False, local=local)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(world.run)
        assert local.entered.wait(30)
        world.engine.attach(new)
        world.engine.step()
        world.run()
        assert world.engine.status.passes == {"triton": 1}
        assert not local.is_closed
        local.may_answer.set()
        running.result(30)
    assert local.is_closed
    world.engine.close()


def test_in_process_from_the_start():
    world = World(None, falls_back=False)
    world.engine.step()
    world.run()
    assert world.place == "in-process"
    world.engine.close()


def test_no_answer_is_wrong_under_threads_failures_and_changes(world):
    remotes = [world.remote, *(Remote(f"triton://n{i}:1") for i in range(8))]
    stop = threading.Event()

    def ask() -> int:
        n = 0
        while not stop.is_set():
            world.run()
            n += 1
        return n

    with ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask) for _ in range(4)]
        for index, remote in enumerate(remotes[1:]):
            remotes[index].failing = gone if index % 2 else None
            world.engine.attach(remote)
            world.later()
        stop.set()
        assert all(one.result(30) > 0 for one in asking)
    world.remote = remotes[-1]
    assert all(one.is_closed for one in remotes[:-1])


def test_a_thread_probes_at_once_when_a_pass_failed(world):
    checked = threading.Event()

    def failing(call: str) -> None:
        if call == "check":
            checked.set()
        gone(call)

    world.engine.start()
    world.remote.failing = failing
    world.run()
    assert checked.wait(30)
