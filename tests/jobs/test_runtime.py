"""The runtime with work of its own: what is queued runs, what is left behind is taken up."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from steelyard.errors import InternalError, StorageUnavailableError
from steelyard.jobs.work import HaltedError, Pending
from steelyard.jobs.workflows import JobRuntime


class CountedWork:
    """Jobs of three parts; a test says what a part does."""

    name = "counted"

    def __init__(self, *jobs: Pending) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.calls: Counter[tuple[str, str]] = Counter()
        self.done: dict[str, str] = {}
        self.left = Counter({job.id: 3 for job in jobs})
        self.running: Counter[str] = Counter()
        self.most_running: Counter[str] = Counter()
        self.failures: list[Exception] = []
        self.halted = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.given_again: list[Pending] = []
        self.stopped: list[str] = []
        self._lock = threading.Lock()

    def pending(self):
        return [job for id_, job in self.jobs.items() if id_ not in self.done]

    def begin(self, job_id, generation):
        self.calls["begin", job_id] += 1
        account = self.jobs[job_id].account_id
        with self._lock:
            self.running[account] += 1
            self.running["all"] += 1
            for name in (account, "all"):
                self.most_running[name] = max(self.most_running[name], self.running[name])
        return True

    def advance(self, job_id, generation):
        self.calls["advance", job_id] += 1
        while not self.may_go_on.wait(0.01):
            if self.halted.is_set():
                raise HaltedError
        if self.failures:
            raise self.failures.pop()
        self.left[job_id] -= 1
        return self.left[job_id] > 0

    def finish(self, job_id, generation):
        self.calls["finish", job_id] += 1
        self._end(job_id, "succeeded")

    def fail(self, job_id, generation, error):
        self._end(job_id, type(error).__name__)

    def stop(self, job_id):
        self.stopped.append(job_id)
        self.done[job_id] = "cancelled"

    def give_again(self, job):
        self.given_again.append(job)
        self.jobs[job.id] = Pending(
            id=job.id,
            account_id=job.account_id,
            generation=job.generation,
            attempt=job.attempt + 1,
        )

    def sweep(self):
        self.calls["sweep", ""] += 1

    def halt(self):
        self.halted.set()

    def _end(self, job_id, how):
        account = self.jobs[job_id].account_id
        with self._lock:
            self.running[account] -= 1
            self.running["all"] -= 1
        self.done.setdefault(job_id, how)


def job(id_, account="acct_1", **given):
    return Pending(id=id_, account_id=account, generation=1, attempt=1, **given)


def runtime_of(tmp_path, *work, executor="srv_1", alive=()):
    url = f"sqlite:///{tmp_path / 'jobs.sqlite'}"
    return JobRuntime(
        url, executor=executor, are_alive=lambda names: set(names) & set(alive), work=work
    )


def wait_for(is_there, timeout_s=30.0):
    give_up_at = time.monotonic() + timeout_s
    while not is_there():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def test_every_job_runs_to_its_end_one_at_a_time(tmp_path):
    work = CountedWork(job("a"), job("b"), job("c", "acct_2"))
    with runtime_of(tmp_path, work):
        wait_for(lambda: len(work.done) == 3)
    assert set(work.done.values()) == {"succeeded"}
    assert {work.calls["advance", id_] for id_ in "abc"} == {3}
    assert {work.calls["finish", id_] for id_ in "abc"} == {1}
    assert work.most_running["all"] == 1


def test_what_a_dead_process_left_is_taken_up_where_it_was(tmp_path):
    first = CountedWork(job("a"))
    first.may_go_on.clear()
    with runtime_of(tmp_path, first):
        wait_for(lambda: first.calls["advance", "a"] == 1)
    second = CountedWork(job("a"))
    with runtime_of(tmp_path, second, executor="srv_2"):
        wait_for(lambda: "a" in second.done)
    assert second.done == {"a": "succeeded"}
    # The beginning was checkpointed, so it is not done again.
    assert second.calls["begin", "a"] == 0
    assert second.calls["advance", "a"] == 3


def test_what_a_living_process_runs_is_left_to_it(tmp_path):
    first = CountedWork(job("a"))
    first.may_go_on.clear()
    with runtime_of(tmp_path, first):
        wait_for(lambda: first.calls["advance", "a"] == 1)
    second = CountedWork(job("a"), job("b", "acct_2"))
    with runtime_of(tmp_path, second, executor="srv_2", alive=["srv_1"]):
        wait_for(lambda: "b" in second.done)
        assert "a" not in second.done


def test_a_failure_that_passes_is_waited_out(tmp_path):
    work = CountedWork(job("a"))
    work.failures = [StorageUnavailableError("The disk is full."), OSError("no")][:1]
    with runtime_of(tmp_path, work):
        wait_for(lambda: "a" in work.done)
    assert work.done == {"a": "succeeded"}
    assert work.calls["advance", "a"] == 4


@pytest.mark.parametrize("error", [InternalError("It broke."), ZeroDivisionError("by zero")])
def test_a_failure_that_stays_ends_the_job(tmp_path, error):
    work = CountedWork(job("a"))
    work.failures = [error]
    with runtime_of(tmp_path, work):
        wait_for(lambda: "a" in work.done)
    assert work.done == {"a": type(error).__name__}


def test_what_is_to_stop_is_stopped_and_not_queued(tmp_path):
    work = CountedWork(job("a", is_cancelling=True))
    with runtime_of(tmp_path, work):
        wait_for(lambda: work.stopped)
    assert work.calls["begin", "a"] == 0


def test_a_job_that_ended_nowhere_is_given_to_the_queue_again(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.jobs.workflows._LOST_S", 0.5)

    class Forgetful(CountedWork):
        def finish(self, job_id, generation):
            if self.jobs[job_id].attempt == 2:
                super().finish(job_id, generation)

    class Another(CountedWork):
        name = "another"

    work = Forgetful(job("a"))
    with runtime_of(tmp_path, work, Another()):
        wait_for(lambda: "a" in work.done)
    assert [again.attempt for again in work.given_again] == [1]


def test_one_process_runs_one(tmp_path):
    work = CountedWork()
    with runtime_of(tmp_path, work), pytest.raises(RuntimeError):
        runtime_of(tmp_path, work).__enter__()
    assert JobRuntime._current is None


def test_a_sweep_asks_every_kind_of_work(tmp_path):
    work = CountedWork()
    with runtime_of(tmp_path, work):
        JobRuntime.sweep_all()
    assert work.calls["sweep", ""] == 1
