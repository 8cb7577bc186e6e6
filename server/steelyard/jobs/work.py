"""What the job runtime needs of a kind of work; the kinds themselves are in ``steelyard.services``.

The state of a job (its status, what it has done) is in the state and belongs to the work. The
runtime decides only when a job runs, and that it is taken up again after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A job that has not ended.

    Parameters
    ----------
    id : str
        The job's.
    account_id : str
        Whose it is; an account's jobs take turns.
    generation : int
        1, and one more for each time it was taken up again on request.
    attempt : int
        How often this generation was given to the queue, from 1.
    is_cancelling : bool
        Whether it is to stop.
    """

    id: str
    account_id: str
    generation: int
    attempt: int
    is_cancelling: bool = False


class HaltedError(BaseException):
    """The process ends: the job goes on in another, from what it has done.

    No ``Exception``, so that nobody takes it for the end of the job.
    """


class Work(Protocol):
    """One kind of job.

    Notes
    -----
    Methods block. All but ``stop`` and ``halt`` may raise a ``SteelyardError`` that is retryable,
    and are then called again after a pause; every other failure they note themselves, or it is
    handed to ``fail``. ``begin``, ``advance`` and ``finish`` may be called again with the same
    arguments after a crash and then go on from what is durable.
    """

    @property
    def name(self) -> str:
        """Name of the kind, such as ``evaluation``."""
        ...

    def pending(self) -> Sequence[Pending]:
        """Give every job that has not ended, the oldest first."""
        ...

    def begin(self, job_id: str, generation: int) -> bool:
        """Take a job up; gives whether there is anything to do."""
        ...

    def advance(self, job_id: str, generation: int) -> bool:
        """Do some of a job; gives whether it is to go on.

        Raises
        ------
        HaltedError
            After ``halt``.
        """
        ...

    def finish(self, job_id: str, generation: int) -> None:
        """End a job that was done; nothing when it was stopped."""
        ...

    def fail(self, job_id: str, generation: int, error: BaseException) -> None:
        """End a job that cannot be done."""
        ...

    def stop(self, job_id: str) -> None:
        """Stop a job that is to stop: what runs here ends soon, what runs nowhere ends now."""
        ...

    def give_again(self, job: Pending) -> None:
        """Note that a job is to be given to the queue once more, or that it was too often."""
        ...

    def sweep(self) -> None:
        """Remove files that no job refers to."""
        ...

    def halt(self) -> None:
        """Stop everything that runs here; it stays to be taken up by another process."""
        ...
