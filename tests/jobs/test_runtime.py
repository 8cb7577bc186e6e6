"""The runtime with work of its own: queued work runs, abandoned work is taken up."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from contextlib import contextmanager

import msgspec
import pytest

from steelyard.errors import InternalError, StorageUnavailableError
from steelyard.jobs import runtime as runtimes
from steelyard.jobs.runtime import JobRuntime
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import LostRunError, Run, Work
from steelyard.storage import open_state
from steelyard.storage.damage import ADVICE
from support.waiting import wait_until


class CountedRun(Run):
    """Three parts; a test sets the effect of a part."""

    def __init__(self, job, work):
        super().__init__(job)
        self.work = work
        account = job.account_id
        with work.lock:
            work.running.update([account, "all"])
            for name in (account, "all"):
                work.most_running[name] = max(work.most_running[name], work.running[name])

    def advance(self):
        work, job_id = self.work, self.job.id
        work.calls["advance", job_id] += 1
        while not work.may_go_on.wait(0.01):
            if self.stopping.is_set():
                return True
        if work.failures:
            raise work.failures.pop()
        work.left[job_id] -= 1
        if work.left[job_id] > 0:
            return True
        work.finish(job_id)
        return False

    def close(self):
        self.work.calls["close", self.job.id] += 1
        with self.work.lock:
            self.work.running.subtract([self.job.account_id, "all"])


class CountedWork(Work):
    """Jobs that are in memory, as a table that several processes share."""

    name = "counted"

    def __init__(self, *jobs: PendingJob) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.calls: Counter[tuple[str, str]] = Counter()
        self.done: dict[str, str] = {}
        self.left = Counter({job.id: 3 for job in jobs})
        self.running: Counter[str] = Counter()
        self.most_running: Counter[str] = Counter()
        self.failures: list[Exception] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.lock = threading.Lock()

    def pending(self, connection):
        return [job for id_, job in self.jobs.items() if id_ not in self.done]

    def claim(self, connection, job):
        self.calls["claim", job.id] += 1
        self.jobs[job.id] = dataclasses.replace(job, status="running")

    def open(self, job):
        return CountedRun(job, self)

    def finish(self, job_id):
        self.done[job_id] = "succeeded"

    def fail(self, job, error):
        self.done.setdefault(job.id, f"{type(error).__name__}: {error}")

    def cancel(self, job):
        self.done.setdefault(job.id, "cancelled")

    def sweep(self):
        self.calls["sweep", ""] += 1


def job(id_, account="acct_1", status="queued", created_at=1.0):
    return PendingJob(
        id=id_, account_id=account, status=status, created_at=created_at, generation=1, attempt=1
    )


def taken_over(work):
    """The same table, as another process sees it whose work succeeds."""
    other = CountedWork()
    other.jobs, other.done, other.left = work.jobs, work.done, work.left
    return other


@contextmanager
def running(tmp_path, *work):
    """A process that runs jobs."""
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    try:
        with JobRuntime(state, work) as runtime:
            yield runtime
    finally:
        state.close()


def test_every_job_runs_to_its_end_one_at_a_time(tmp_path):
    work = CountedWork(job("a"), job("b"), job("c", "acct_2"))
    with running(tmp_path, work):
        wait_until(lambda: len(work.done) == 3)
    assert set(work.done.values()) == {"succeeded"}
    assert {work.calls["advance", id_] for id_ in "abc"} == {3}
    assert {work.calls["close", id_] for id_ in "abc"} == {1}
    assert work.most_running["all"] == 1


def test_the_oldest_goes_first_and_accounts_take_turns(tmp_path):
    work = CountedWork(job("late", created_at=4.0), job("later", created_at=5.0))

    class Another(CountedWork):
        name = "another"

    another = Another(job("first", created_at=1.0), job("theirs", "acct_2", created_at=6.0))
    ended = []
    work.finish = another.finish = ended.append
    work.pending = lambda _: [one for one in work.jobs.values() if one.id not in ended]
    another.pending = lambda _: [one for one in another.jobs.values() if one.id not in ended]
    with running(tmp_path, work, another):
        wait_until(lambda: len(ended) == 4)
    assert ended == ["first", "theirs", "late", "later"]


def test_a_job_of_a_dead_process_is_continued(tmp_path):
    first = CountedWork(job("a"))
    first.left["a"] = 2
    first.may_go_on.clear()
    with running(tmp_path, first):
        wait_until(lambda: first.calls["advance", "a"] == 1)
    assert (first.calls["close", "a"], first.done) == (1, {})
    second = taken_over(first)
    with running(tmp_path, second):
        wait_until(lambda: "a" in second.done)
    assert second.done == {"a": "succeeded"}
    assert (second.calls["claim", "a"], second.calls["advance", "a"]) == (1, 2)
    assert second.jobs["a"].attempt == 1  # the first ended in order: that is no death


def test_deaths_soon_after_a_start_fail_no_job(tmp_path, monkeypatch):
    """Five kills in a minute: the fourth process leaves that work alone until it is older."""
    with two_processes(tmp_path) as (mine, _):
        work = Listed(job("a"))
        begun = []
        for _ in range(5):
            begun += claims(mine, work)
            work.listed = [dataclasses.replace(work.listed[0], runner="gone")]
        assert begun == [("a", None), ("a", None), None, None, None]
        monkeypatch.setattr(runtimes, "_UP_S", (0.0,) * 5)
        assert claims(mine, work) == [("a", None)]
        assert work.listed[0].attempt == 3


def test_a_job_of_a_living_process_is_left_to_it(tmp_path):
    first = CountedWork(job("a"))
    first.may_go_on.clear()
    with running(tmp_path, first):
        wait_until(lambda: first.calls["advance", "a"] == 1)
        first.jobs["b"] = job("b", "acct_2", created_at=2.0)
        first.jobs["c"] = job("c", created_at=3.0)
        first.left.update({"b": 3, "c": 3})
        second = taken_over(first)
        with running(tmp_path, second):
            wait_until(lambda: "b" in second.done)
            # Of the account whose job runs there nothing runs here.
            assert set(second.done) == {"b"}
            assert second.calls["claim", "a"] == second.calls["claim", "c"] == 0


class Listed(CountedWork):
    """Jobs as they are listed, in partitions of which a process may take one."""

    def __init__(self, *jobs):
        super().__init__()
        self.listed = list(jobs)

    def pending(self, connection):
        return self.listed

    def claim(self, connection, job):
        self.listed = [job if one.key == job.key else one for one in self.listed]


def part(id_, number, account="acct_1", runner=None, **given):
    return dataclasses.replace(job(id_, account, **given), partition=number, runner=runner)


@contextmanager
def two_processes(tmp_path):
    url = f"sqlite:///{tmp_path / 'state.sqlite'}"
    first, second = open_state(url), open_state(url)
    try:
        yield first, second
    finally:
        first.close()
        second.close()


def claims(state, work, n=1):
    """The claims of a process, one after the other."""
    runtime = JobRuntime(state, [work])
    taken = [state.write_now(runtime.claim) for _ in range(n)]
    return [one and one[1].key for one in taken]


def test_a_job_of_partitions_is_run_by_every_process_that_is_free(tmp_path):
    with two_processes(tmp_path) as (mine, other):
        held = part("a", 0, runner=other.instance)
        work = Listed(held, part("a", 1), part("b", 0, created_at=2.0), job("c", created_at=3.0))
        assert claims(mine, work) == [("a", 1)]
        # Of an account one job runs at a time: what is left of this one is elsewhere.
        work.listed.remove(work.listed[1])
        assert claims(mine, work) == [None]


def test_partitions_keep_no_other_account_waiting(tmp_path):
    with two_processes(tmp_path) as (mine, other):
        waiting = job("theirs", "acct_2", created_at=9.0)
        work = Listed(part("a", 0, runner=other.instance), part("a", 1), waiting)
        assert claims(mine, work) == [("theirs", None)]
        # Where each account has a process, it goes on with what it began.
        work = Listed(
            part("a", 1), part("b", 0, "acct_2", runner=other.instance), part("b", 1, "acct_2")
        )
        assert claims(mine, work) == [("a", 1)]
        # One process takes turns.
        work = Listed(part("a", 0), part("a", 1), waiting)
        assert claims(mine, work, 2) == [("a", 0), ("theirs", None)]


def test_a_partition_of_a_dead_process_is_taken_up_by_another(tmp_path):
    with two_processes(tmp_path) as (mine, other):
        work = Listed(part("a", 0, runner="gone"), part("a", 1, runner=other.instance))
        assert claims(mine, work) == [("a", 0)]
        assert (work.listed[0].runner, work.listed[0].attempt) == (mine.instance, 2)


def test_a_failure_that_passes_is_waited_out(tmp_path):
    work = CountedWork(job("a"))
    work.failures = [StorageUnavailableError("The disk is full.")]
    with running(tmp_path, work):
        wait_until(lambda: "a" in work.done)
    assert work.done == {"a": "succeeded"}
    assert work.calls["advance", "a"] == 4
    assert work.calls["claim", "a"] == 1


def test_a_failure_that_never_passes_ends_the_job(tmp_path, monkeypatch):
    monkeypatch.setattr(runtimes, "_PAUSES_S", (0.0,) * 5)
    work = CountedWork(job("a"))
    work.failures = [StorageUnavailableError("The disk is full.") for _ in range(6)]
    with running(tmp_path, work):
        wait_until(lambda: "a" in work.done)
    assert work.done == {"a": "StorageUnavailableError: The disk is full."}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InternalError("It broke."), "InternalError: It broke."),
        (
            ZeroDivisionError("by zero"),
            "InternalError: The counted failed here, and the log says why.",
        ),
        (
            msgspec.DecodeError("truncated"),
            f"DataDamagedError: A row of the state's database cannot be read. {ADVICE}",
        ),
    ],
)
def test_a_failure_that_stays_ends_the_job(tmp_path, error, told):
    work = CountedWork(job("a"))
    work.failures = [error]
    with running(tmp_path, work):
        wait_until(lambda: "a" in work.done)
    assert work.done == {"a": told}


def test_cancelled_jobs_are_stopped_and_not_begun(tmp_path):
    work = CountedWork(job("a", status="cancelling"))
    with running(tmp_path, work):
        wait_until(lambda: work.done)
    assert work.done == {"a": "cancelled"}
    assert work.calls["claim", "a"] == 0


def test_running_jobs_have_a_moment_to_stop(tmp_path):
    work = CountedWork(job("a"), job("b", "acct_2", created_at=2.0))
    work.may_go_on.clear()
    with running(tmp_path, work) as runtime:
        wait_until(lambda: work.calls["advance", "a"] == 1)
        work.jobs["a"] = dataclasses.replace(work.jobs["a"], status="cancelling")
        runtime.wake()
        wait_until(lambda: "a" in work.done)
        assert work.done["a"] == "cancelled"
        assert work.calls["close", "a"] == 1
        wait_until(lambda: work.calls["advance", "b"] == 1)


def test_a_run_that_another_process_took_over_stops(tmp_path):
    work = CountedWork(job("a"))
    work.may_go_on.clear()
    with running(tmp_path, work), running(tmp_path) as other:
        wait_until(lambda: work.calls["advance", "a"] == 1)
        work.jobs["a"] = dataclasses.replace(work.jobs["a"], runner=other._state.instance)
        wait_until(lambda: work.calls["close", "a"] == 1)
        assert work.done == {}


@pytest.mark.parametrize("ends_in", [LostRunError, None])
def test_a_job_that_ends_too_often_without_a_result_has_failed(tmp_path, ends_in):
    class Forgetful(CountedWork):
        def finish(self, job_id):
            self.left[job_id] = 3
            if ends_in is not None:
                raise ends_in

    work = Forgetful(job("a"), job("b", "acct_2", created_at=2.0))
    with running(tmp_path, work):
        wait_until(lambda: len(work.done) == 2)
    for id_ in "ab":
        assert work.done[id_].startswith("InternalError: The counted ended 5 times")
        assert work.calls["claim", id_] == 5


def test_a_job_that_cannot_be_claimed_keeps_no_other_account_waiting(tmp_path):
    class Stubborn(CountedWork):
        def claim(self, connection, job):
            if job.id == "a":
                raise ValueError("unreadable")
            super().claim(connection, job)

    work = Stubborn(job("a"), job("b", "acct_2", created_at=2.0))
    with running(tmp_path, work):
        wait_until(lambda: "b" in work.done)
    assert work.done == {"b": "succeeded"}


def test_every_kind_of_work_is_swept_and_jobs_go_on_after(tmp_path, monkeypatch):
    monkeypatch.setattr(runtimes, "_SWEEP_S", 0.0)
    work = CountedWork()
    with running(tmp_path, work):
        wait_until(lambda: work.calls["sweep", ""] >= 2)
        monkeypatch.setattr(runtimes, "_SWEEP_S", 3600.0)
        work.jobs["a"], work.left["a"] = job("a"), 3
        wait_until(lambda: "a" in work.done)
