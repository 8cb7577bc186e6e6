"""The commands that every kind of job has: shown, followed and stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.terminal import printable, show_warnings

if TYPE_CHECKING:
    from steelyard.client import Client

Job = TypeVar("Job")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCommands(Generic[Job]):
    """The commands of one kind of job."""

    #: Returns the part of a client that has its calls.
    of: Callable[[Client], Any]
    show: Callable[[Job], None]
    #: Whether a finished job made its result.
    is_done: Callable[[Job], bool]
    #: Returns the id of the job that goes on from a finished one, if any.
    next_of: Callable[[Client, Job], str | None] = lambda *_: None
    metavar: str = "JOB"

    def begun(self, client: Client, job: Any, *, follow: bool) -> Shown:
        """Return a job that was queued, or follow it, after the warnings of its answer."""
        show_warnings(getattr(job, "warnings", None))
        return self.follow(client, job) if follow else (job, self.show)

    def follow(self, client: Client, job: Any, timeout_s: float | None = None) -> Shown:
        """Wait until a job and those after it are over; the command ends with 1 when they made nothing."""
        answer, is_done = None, False
        while job is not None:
            # Whatever ends the wait, it can be taken up again under this id.
            click.echo(f"Following {printable(job if isinstance(job, str) else job.id)}", err=True)
            answer = self.of(client).wait(job, timeout_s=timeout_s)
            is_done = is_done or self.is_done(answer)
            job = self.next_of(client, answer)
        return answer, self.show, not is_done

    def add_to(self, noun: Noun, *, show: str, follow: str, cancel: str) -> None:
        """Add the commands to those of a kind of job, each with its help."""
        job_argument = click.argument("job", metavar=self.metavar)

        @noun.asks("show", help=show)
        @job_argument
        def show_job(client: Client, job: str) -> Shown:
            return self.of(client).get(job), self.show

        @noun.asks("follow", help=follow, epilog=noun.epilog)
        @job_argument
        @click.option(
            "--timeout", "timeout_s", type=float, help="Seconds to wait. [default: no end]"
        )
        def follow_job(client: Client, job: str, timeout_s: float | None) -> Shown:
            return self.follow(client, job, timeout_s)

        @noun.asks("cancel", help=cancel)
        @job_argument
        def cancel_job(client: Client, job: str) -> Shown:
            return self.of(client).cancel(job), self.show
