"""The interface between a kind of long work and the runtime.

The place of a job and its progress are in a table of its kind (``steelyard.jobs.store``). The
runtime (``steelyard.jobs.runtime``) decides when it runs, and takes up the jobs of a dead process.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
from sqlalchemy import Connection, Row, Table

from steelyard.errors import SteelyardError
from steelyard.jobs import store
from steelyard.jobs.failures import Failure
from steelyard.jobs.store import PendingJob
from steelyard.storage import State


class LostRunError(Exception):
    """The job is no longer this run's: it was stopped, retried, or another process has it."""


class Run(ABC):
    """A job that runs in this process, as it was claimed: one thread drives it, another stops it."""

    def __init__(self, job: PendingJob) -> None:
        self.job = job
        self.stopping = threading.Event()

    @abstractmethod
    def advance(self) -> bool:
        """Do some of the job, and end it once all is done; returns whether there is more to do.

        It goes on from the durable part: it is called again after a retryable ``SteelyardError``,
        and after a crash by another process. Any other error ends the job.
        """

    def stop(self) -> None:
        """Make ``advance`` return soon; called from another thread."""
        self.stopping.set()

    def check(self) -> None:
        """Raise ``LostRunError`` once it is to stop."""
        if self.stopping.is_set():
            raise LostRunError

    @abstractmethod
    def close(self) -> None:
        """Release the run's resources."""


class Work(ABC):
    """One kind of job."""

    name: ClassVar[str]

    @abstractmethod
    def pending(self, connection: Connection) -> list[PendingJob]:
        """Return every job that has not ended, the oldest first."""

    @abstractmethod
    def claim(self, connection: Connection, job: PendingJob) -> None:
        """Write that a job runs, with the runner and the attempt that it names now."""

    @abstractmethod
    def open(self, job: PendingJob) -> Run:
        """Return the run of a job that was claimed; its work begins with ``advance``."""

    @abstractmethod
    def fail(self, job: PendingJob, error: SteelyardError) -> None:
        """End a job that cannot be done; nothing when it has ended, or was retried."""

    @abstractmethod
    def cancel(self, job: PendingJob) -> None:
        """End a job that is to stop and runs nowhere; nothing when it has ended."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove files that no job refers to."""


class TableWork(Work):
    """A kind of job whose jobs are the rows of one table, with statuses alone to move."""

    table: ClassVar[Table]
    state: State
    now: Callable[[], float]

    def pending(self, connection: Connection) -> list[PendingJob]:
        """Return every job that has not ended, the oldest first."""
        return store.unfinished(connection, self.table)

    def claim(self, connection: Connection, job: PendingJob) -> None:
        """Write that a job runs."""
        store.set_runner(connection, self.table, job, status="running", updated_at=self.now())

    def fail(self, job: PendingJob, error: SteelyardError) -> None:
        """Store why a job cannot be done."""
        failure = msgspec.json.encode(Failure(code=error.code, message=error.message))
        self.end(job, "failed", ("queued", "running"), generation=job.generation, error=failure)

    def cancel(self, job: PendingJob) -> None:
        """End a job that is to stop."""
        self.end(job, "cancelled", ("cancelling",))

    def move(
        self,
        connection: Connection,
        job_id: str,
        status: str,
        *,
        at: float,
        only_if: Sequence[str],
        **values: Any,
    ) -> bool:
        """Move a job to another status; a kind whose jobs hold money, or tell of it, does that too."""
        return store.move(connection, self.table, job_id, status, at=at, only_if=only_if, **values)

    def end(self, job: PendingJob, status: str, only_if: Sequence[str], **values: Any) -> None:
        """Move a job to a status in which it has ended."""
        self.state.write_now(
            lambda connection: self.move(
                connection, job.id, status, at=self.now(), only_if=only_if, **values
            )
        )

    def find(self, job: PendingJob) -> Row[Any]:
        """Return the row of a job that runs here; ``LostRunError`` when it is no longer this runner's."""
        row = self.state.read_now(
            lambda connection: store.find_running(connection, self.table, job)
        )
        if row is None:
            raise LostRunError
        return row

    def write(self, change: Callable[[Connection], bool]) -> None:
        """Write a change to a job that runs here; ``LostRunError`` when its run no longer counts."""
        if not self.state.write_now(change):
            raise LostRunError
