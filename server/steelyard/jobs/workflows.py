"""Jobs as DBOS workflows: queued, checkpointed, and taken up again wherever their process died.

DBOS keeps its tables in a database of their own beside the state. The state says which jobs there
are; a dispatcher gives each to DBOS once (a workflow's id is the job's, its generation and its
attempt), hands what a dead process left to the queue again, and stops what is to stop. One process
has at most one runtime: DBOS itself is one a process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_errors

from steelyard.errors import SteelyardError
from steelyard.jobs.work import HaltedError, Pending, Work

_log = logging.getLogger(__name__)

T = TypeVar("T")

QUEUE = "jobs"
#: Of what a workflow's steps are. Raised when recorded steps of an older release cannot be replayed;
#: jobs that it left are then given to the queue anew, and go on from what they have done.
WORKFLOW_VERSION = "1"
SCHEMA = "steelyard_jobs"
#: Seconds between two looks at the state, and at what dead processes left.
_LOOK_S, _RECOVER_S = 0.25, 5.0
#: Seconds after which a job that runs in no workflow is given to the queue again.
_LOST_S = 10.0
#: Seconds between two polls of DBOS's queue.
_POLL_S = 0.2
_SWEEP_CRON = "17 * * * *"
_KEPT_WORKFLOWS_S = 7 * 86_400
_LIVE = frozenset({"ENQUEUED", "PENDING", "DELAYED"})


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, SteelyardError) and error.retryable


_retrying: Mapping[str, Any] = {
    "retries_allowed": True,
    "max_attempts": 6,
    "interval_seconds": 0.5,
    "backoff_rate": 2.0,
    "should_retry": _may_pass,
}


def _noted(work: Work, job_id: str, generation: int, act: Callable[[], T], ended: T) -> T:
    """Do a part of a job; a failure that will not pass ends the job here.

    What a step raises would be kept as a pickle, which not every error survives.
    """
    try:
        return act()
    except Exception as error:
        if _may_pass(error):
            raise
        work.fail(job_id, generation, error)
        return ended


@DBOS.step(name="begin", **_retrying)
def _begin(kind: str, job_id: str, generation: int) -> bool:
    work = JobRuntime.work_of(kind)
    return _noted(work, job_id, generation, lambda: work.begin(job_id, generation), ended=False)


@DBOS.step(name="advance", **_retrying)
def _advance(kind: str, job_id: str, generation: int) -> bool:
    work = JobRuntime.work_of(kind)
    return _noted(work, job_id, generation, lambda: work.advance(job_id, generation), ended=False)


@DBOS.step(name="finish", **_retrying)
def _finish(kind: str, job_id: str, generation: int) -> None:
    work = JobRuntime.work_of(kind)
    _noted(work, job_id, generation, lambda: work.finish(job_id, generation), ended=None)


@DBOS.workflow(name="run_job")
def run_job(kind: str, job_id: str, generation: int) -> None:
    """Do a job, step by step.

    Parameters
    ----------
    kind : str
        Name of its work.
    job_id : str
    generation : int
    """
    try:
        if not _begin(kind, job_id, generation):
            return
        while _advance(kind, job_id, generation):
            pass
        _finish(kind, job_id, generation)
    except dbos_errors.DBOSMaxStepRetriesExceeded as error:
        cause = error.errors[-1] if error.errors else error
        JobRuntime.work_of(kind).fail(job_id, generation, cause)


@DBOS.workflow(name="sweep")
def sweep(_: datetime, __: Any) -> None:
    """Remove what no job refers to, and workflows that ended long ago."""
    JobRuntime.sweep_all()


class JobRuntime:
    """Runs the jobs of a state in this process.

    Parameters
    ----------
    url : str
        Database of DBOS: ``sqlite:///PATH`` or ``postgresql+psycopg://…``.
    executor : str
        Names this process, and no other that ever ran.
    are_alive : callable
        Takes names of such processes and gives those that are alive.
    work : sequence of Work
        The kinds of jobs.

    Notes
    -----
    A context manager. A process runs one job at a time, since a job has the whole engine; an
    account has one running job at most, however many processes there are.
    """

    _current: ClassVar[JobRuntime | None] = None

    def __init__(
        self,
        url: str,
        *,
        executor: str,
        are_alive: Callable[[Collection[str]], Collection[str]],
        work: Sequence[Work],
    ) -> None:
        self._url = url
        self._executor = executor
        self._are_alive = are_alive
        self._work = {kind.name: kind for kind in work}
        self._given: set[str] = set()
        self._missing: dict[str, dict[str, float]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._dispatch, name="steelyard-jobs", daemon=True)
        self._busy_at = time.monotonic()

    @classmethod
    def work_of(cls, kind: str) -> Work:
        """Give a kind of job of the process's runtime."""
        if cls._current is None:
            raise HaltedError
        return cls._current._work[kind]

    @classmethod
    def sweep_all(cls) -> None:
        """Sweep every kind of job of the process's runtime."""
        runtime = cls._current
        if runtime is None:
            return
        for work in runtime._work.values():
            work.sweep()
        runtime._forget_old_workflows()

    @property
    def idle_s(self) -> float:
        """For how many seconds there has been no job."""
        return time.monotonic() - self._busy_at

    def __enter__(self) -> JobRuntime:
        if JobRuntime._current is not None:
            raise RuntimeError("This process runs jobs already; run others in another process.")
        _log_through_ours()
        is_file = self._url.startswith("sqlite")
        config: DBOSConfig = {
            "name": "steelyard",
            "system_database_url": self._url,
            "dbos_system_schema": SCHEMA,
            "executor_id": self._executor,
            "application_version": WORKFLOW_VERSION,
            "log_level": "WARNING",
            "max_executor_threads": 4,
            "use_listen_notify": not is_file,
        }
        JobRuntime._current = self
        try:
            DBOS(config=config)
            DBOS.launch()
            DBOS.register_queue(
                QUEUE,
                worker_concurrency=1,
                partition_concurrency=1,
                polling_interval_sec=_POLL_S,
                on_conflict="always_update",
            )
            self._schedule_sweep()
            self._recover()
            self._thread.start()
        except BaseException:
            DBOS.destroy(workflow_completion_timeout_sec=0)
            JobRuntime._current = None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop: what runs is left to be taken up by another process."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for work in self._work.values():
            work.halt()
        DBOS.destroy(workflow_completion_timeout_sec=0)
        JobRuntime._current = None

    def _dispatch(self) -> None:
        recovered_at = time.monotonic()
        while not self._stopping.wait(_LOOK_S):
            try:
                for work in self._work.values():
                    self._look_at(work)
                if time.monotonic() - recovered_at >= _RECOVER_S:
                    self._recover()
                    recovered_at = time.monotonic()
            except SteelyardError as error:
                _log.warning("Jobs could not be looked at: %s", error.message)
            except Exception:  # noqa: BLE001  the next look may work
                _log.exception("Jobs could not be looked at.")

    def _look_at(self, work: Work) -> None:
        jobs = work.pending()
        if jobs:
            self._busy_at = time.monotonic()
        for job in jobs:
            if job.is_cancelling:
                work.stop(job.id)
                continue
            workflow_id = f"{job.id}-{job.generation}-{job.attempt}"
            if workflow_id not in self._given:
                with (
                    SetWorkflowID(workflow_id),
                    SetEnqueueOptions(queue_partition_key=job.account_id),
                ):
                    DBOS.enqueue_workflow(QUEUE, run_job, work.name, job.id, job.generation)
                self._given.add(workflow_id)
        self._find_lost(work, jobs)

    def _find_lost(self, work: Work, jobs: Sequence[Pending]) -> None:
        """Give jobs to the queue again whose workflow ended without ending them."""
        by_workflow = {f"{job.id}-{job.generation}-{job.attempt}": job for job in jobs}
        now = time.monotonic()
        known = self._missing.get(work.name, {})
        missing = {id_: known.get(id_, now) for id_ in by_workflow}
        self._missing[work.name] = missing
        due = [id_ for id_, since in missing.items() if now - since >= _LOST_S]
        if not due:
            return
        found = DBOS.list_workflows(workflow_ids=due, load_input=False, load_output=False)
        alive = {status.workflow_id for status in found if status.status in _LIVE}
        for id_ in due:
            if id_ in alive:
                missing[id_] = now
            else:
                _log.warning("Job %s ended without a result; it is tried again.", id_)
                work.give_again(by_workflow[id_])

    def _recover(self) -> None:
        """Hand what dead processes left to the queue again."""
        running = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
        executors = {status.executor_id for status in running if status.executor_id}
        executors.discard(self._executor)
        if not executors:
            return
        dead = sorted(executors - set(self._are_alive(executors)))
        if dead:
            # The one call for it; it is idempotent, so several processes may make it at once.
            DBOS._recover_pending_workflows(dead)

    def _schedule_sweep(self) -> None:
        if not DBOS.list_schedules(schedule_name_prefix="sweep"):
            DBOS.create_schedule(schedule_name="sweep", workflow_fn=sweep, schedule=_SWEEP_CRON)

    def _forget_old_workflows(self) -> None:
        before = datetime.fromtimestamp(time.time() - _KEPT_WORKFLOWS_S).astimezone()
        old = DBOS.list_workflows(
            completed_before=before.isoformat(), limit=1000, load_input=False, load_output=False
        )
        if old:
            DBOS.delete_workflows([status.workflow_id for status in old])


def _log_through_ours() -> None:
    """Keep DBOS from writing to the console itself: it adds a handler only where there is none."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
