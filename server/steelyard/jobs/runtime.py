"""Runs the jobs of a state in this process, one at a time, until each has ended.

There is no queue beside the tables of the jobs. A job is claimed in one transaction that writes who
runs it; processes write in turns, so no two claim the same. A dead process releases its lock on the
state: then the next process claims the job, and goes on from its durable part. One that ends in
order names no runner any more, so that only deaths while a job ran are counted against it.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from steelyard import tracing
from steelyard.errors import InternalError, SteelyardError
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import LostRunError, Run, Work
from steelyard.patience import Patience
from steelyard.storage import State
from steelyard.tracing.attributes import Attributes

_log = logging.getLogger(__name__)

#: Seconds between two looks at the tables where nothing else is said; ``wake`` makes one at once.
_LOOK_S = 0.5
#: Seconds that a run has to end by itself before its job counts as stopped.
_STOP_GRACE_S = 0.4
#: Seconds between the tries of a part of a job that fails in a way that may pass.
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
#: How often a job is begun without getting further before it has failed.
_MAX_ATTEMPTS = 5
#: Seconds for which a process must have run before it begins a job for the first, second, … time:
#: where every process dies young, the machine is at fault and not the job.
_UP_S = (0.0, 0.0, 5.0, 20.0, 60.0)
_SWEEP_S = 3600.0
#: Seconds that ``close`` waits for running jobs.
_CLOSE_S = 8.0

_Job = tuple[Work, PendingJob]


class JobRuntime:
    """Runs the jobs of a state in this process, from ``with`` to its end.

    A process runs one job at a time, since a job has the whole engine; an account has one running
    job at most, however many processes there are. A job of several partitions is run by every
    process that no other account's job waits for, each a partition at a time.
    """

    def __init__(
        self,
        state: State,
        work: Sequence[Work],
        *,
        on_begin: Callable[[], object] = lambda: None,
        look_s: float = _LOOK_S,
    ) -> None:
        self._state = state
        self._look_s = look_s
        self._on_begin = on_begin
        self.work = {kind.name: kind for kind in work}
        #: Called when a job has ended here.
        self.on_end: Callable[[], object] = lambda: None
        self._run: Run | None = None
        self._work: Work | None = None  # whose run it is
        self._stop_asked_at: float | None = None
        self._busy: threading.Thread | None = None
        self._claimed_at: dict[str, float] = {}
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="steelyard-jobs", daemon=True)
        self._began_at = self._swept_at = self._had_jobs_at = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds for which there has been no job."""
        return time.monotonic() - self._had_jobs_at

    def __enter__(self) -> JobRuntime:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wake(self) -> None:
        """Look for new work and for stops now."""
        self._changed.set()

    def close(self) -> None:
        """Stop: running jobs are left to another process, which counts no death for them."""
        self._stopping.set()
        self._changed.set()
        self._thread.join()
        run, busy, work = self._run, self._busy, self._work
        if run is not None:
            run.stop()
        if busy is not None:
            busy.join(_CLOSE_S)
        if run is not None and work is not None:
            try:
                self._state.write_now(lambda connection: self._release(connection, work, run.job))
            except SteelyardError as error:
                _log.warning("A job could not be left in order: %s", error.message)

    def _release(self, connection: Connection, work: Work, job: PendingJob) -> None:
        mine = (job.key, job.generation, job.runner)
        for pending in work.pending(connection):
            if (pending.key, pending.generation, pending.runner) == mine:
                work.claim(connection, dataclasses.replace(pending, runner=None))

    def sweep(self) -> None:
        """Remove files without a job."""
        for work in self.work.values():
            work.sweep()

    def _keep(self) -> None:
        while not self._stopping.is_set():
            self._changed.clear()
            try:
                self._look()
            except SteelyardError as error:
                _log.warning("Could not look at the jobs: %s", error.message)
            except Exception:  # noqa: BLE001  the next look may work
                _log.exception("Could not look at the jobs.")
            self._changed.wait(self._look_s)

    def _look(self) -> None:
        jobs = self._state.read_now(self._pending)
        if jobs:
            self._had_jobs_at = time.monotonic()
        self._stop_lost(jobs)
        for work, job in jobs:
            if job.status == "cancelling":
                self._stop(work, job)
        if self._busy is not None:
            return
        if time.monotonic() - self._swept_at >= _SWEEP_S:
            self._swept_at = time.monotonic()
            self._start(self.sweep)
        elif any(job.status != "cancelling" for _, job in jobs):
            claimed = self._state.write_now(self.claim)
            if claimed is not None:
                self._begin(*claimed)

    def _pending(self, connection: Connection) -> list[_Job]:
        jobs = [(work, job) for work in self.work.values() for job in work.pending(connection)]
        return sorted(jobs, key=lambda job: job[1].created_at)

    def claim(self, connection: Connection) -> _Job | None:
        """Claim the oldest job of the account whose turn it is; ``None`` when none can run here."""
        jobs = self._pending(connection)
        taken = {job.key for _, job in jobs if self._runs_elsewhere(connection, job)}
        #: The job of each account that other processes run.
        elsewhere = {job.account_id: job.id for _, job in jobs if job.key in taken}
        waiting = [
            (work, job)
            for work, job in jobs
            if job.status != "cancelling"
            and job.key not in taken
            and elsewhere.get(job.account_id, job.id) == job.id
            and self._may_begin(job)
        ]
        if not waiting:
            return None

        def turn(candidate: _Job) -> tuple[bool, float]:
            # An account without a running job comes before one whose job other processes run.
            account_id = candidate[1].account_id
            return account_id in elsewhere, self._claimed_at.get(account_id, 0.0)

        work, job = min(waiting, key=turn)
        # Noted first, so that a job that cannot be claimed keeps no other account waiting.
        self._claimed_at[job.account_id] = time.monotonic()
        attempt = _next_attempt(job)
        claimed = dataclasses.replace(job, runner=self._state.instance, attempt=attempt)
        if attempt <= _MAX_ATTEMPTS:
            work.claim(connection, claimed)
        return work, claimed

    def _may_begin(self, job: PendingJob) -> bool:
        """Whether this process has run for long enough to try a job whose runner died."""
        attempt = _next_attempt(job)
        if job.runner in {None, self._state.instance} or attempt > _MAX_ATTEMPTS:
            return True
        return time.monotonic() - self._began_at >= _UP_S[attempt - 1]

    def _begin(self, work: Work, job: PendingJob) -> None:
        if job.attempt > _MAX_ATTEMPTS:
            lost = InternalError(
                f"The {_noun(work)} ended {_MAX_ATTEMPTS} times without a result; look at the "
                "worker's log, and start it again."
            )
            work.fail(job, lost)
            return
        self._on_begin()
        self._work = work
        run = self._run = work.open(job)
        self._stop_asked_at = None
        self._start(lambda: self._drive(work, run))

    def _start(self, task: Callable[[], None]) -> None:
        def do() -> None:
            try:
                task()
            except Exception as error:  # noqa: BLE001  the next look takes it up
                explained = self._state.explain(error)
                if isinstance(explained, SteelyardError):
                    _log.warning("Could not end a job or sweep: %s", explained.message)
                else:
                    _log.exception("Could not end a job or sweep.")
            finally:
                self._run = self._busy = None
                self._changed.set()
                self.on_end()

        self._busy = threading.Thread(target=do, name="steelyard-job", daemon=True)
        self._busy.start()

    def _drive(self, work: Work, run: Run) -> None:
        """Run a job to its end, or until it is to stop."""
        try:
            while not run.stopping.is_set() and _step(work, run):
                pass
        except LostRunError:
            pass
        except Exception as error:  # noqa: BLE001  it is noted as the job's
            # What is to stop ends as stopped, whatever else came of it.
            if not run.stopping.is_set():
                work.fail(run.job, _owner_error(work, run.job, self._state.explain(error)))
        finally:
            run.close()

    def _stop(self, work: Work, job: PendingJob) -> None:
        """Stop a job: a running one has a moment to store its progress, a waiting one ends."""
        run = self._run
        if run is not None and run.job.key == job.key:
            if self._stop_asked_at is None:
                self._stop_asked_at = time.monotonic()
            run.stop()
            if time.monotonic() - self._stop_asked_at < _STOP_GRACE_S:
                return
        elif self._state.write_now(lambda connection: self._runs_elsewhere(connection, job)):
            return
        work.cancel(job)

    def _stop_lost(self, jobs: Sequence[_Job]) -> None:
        """Stop a run whose job another process took, as after a lost connection, or ended."""
        run = self._run
        if run is None:
            return
        mine = (run.job.key, run.job.generation, run.job.runner)
        if all((job.key, job.generation, job.runner) != mine for _, job in jobs):
            run.stop()

    def _runs_elsewhere(self, connection: Connection, job: PendingJob) -> bool:
        if job.runner is None or job.runner == self._state.instance:
            return False
        return self._state.is_alive(connection, job.runner)


def _next_attempt(job: PendingJob) -> int:
    """Return which time a job is begun; a runner that is gone and still named died at it."""
    return job.attempt + (job.runner is not None)


def _step(work: Work, run: Run) -> bool:
    attributes: Attributes = {
        "steelyard.job.id": run.job.id,
        "steelyard.job.attempt": run.job.attempt,
    }
    with tracing.span(f"job {_noun(work)}", attributes):
        return _advance(run)


def _advance(run: Run) -> bool:
    """Do some of a job, after a pause again where a failure may pass; return whether to go on."""
    patience = Patience()
    for pause_s in _PAUSES_S:
        try:
            return run.advance()
        except SteelyardError as error:
            patience.failed()
            if not error.retryable or patience.is_over:
                raise
            _log.warning("Job %s is tried again: %s", run.job.id, error.message)
        if run.stopping.wait(pause_s):
            return False
    return run.advance()


def _owner_error(work: Work, job: PendingJob, error: Exception) -> SteelyardError:
    """Return the error that a job's owner sees; a fault of ours is logged."""
    if isinstance(error, SteelyardError) and not isinstance(error, InternalError):
        return error
    _log.error("Job %s failed.", job.id, exc_info=error)
    if isinstance(error, InternalError):
        return error
    return InternalError(f"The {_noun(work)} failed here, and the log says why.")


def _noun(work: Work) -> str:
    return work.name.replace("_", "-")
