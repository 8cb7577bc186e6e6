"""The commands that every kind of job has: shown, followed and stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.failures import FAILED
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client

Job = TypeVar("Job")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCommands(Generic[Job]):
    """The commands of one kind of job."""

    #: Returns the part of a client that has its calls.
    of: Callable[[Client], Any]
    metavar: str
    epilog: str
    show: Callable[[Job], None]
    #: Whether a job that is over made what it was waited for.
    is_done: Callable[[Job], bool]

    def follow(
        self, client: Client, job: Any, server: Server, *, timeout_s: float | None = None
    ) -> None:
        """Wait until a job is over and print it; exit with 1 when it made nothing."""
        # Whatever ends the wait, it can be taken up again under this id.
        click.echo(f"Following {printable(job if isinstance(job, str) else job.id)}", err=True)
        answer = self.of(client).wait(job, timeout_s=timeout_s)
        server.show(answer, self.show)
        if not self.is_done(answer):
            raise click.exceptions.Exit(FAILED)

    def add_to(self, group: click.Group, *, show: str, follow: str, cancel: str) -> None:
        """Add the commands to those of a kind of job, each with its help."""

        @group.command("show", help=show, epilog=self.epilog)
        @click.argument("job", metavar=self.metavar)
        @server_options
        def show_job(*, job: str, server: Server) -> None:
            with server.connected() as client:
                answer = self.of(client).get(job)
            server.show(answer, self.show)

        @group.command("follow", help=follow, epilog=self.epilog)
        @click.argument("job", metavar=self.metavar)
        @click.option(
            "--timeout", "timeout_s", type=float, help="Seconds to wait. [default: no end]"
        )
        @server_options
        def follow_job(*, job: str, timeout_s: float | None, server: Server) -> None:
            with server.connected() as client:
                self.follow(client, job, server, timeout_s=timeout_s)

        @group.command("cancel", help=cancel, epilog=self.epilog)
        @click.argument("job", metavar=self.metavar)
        @server_options
        def cancel_job(*, job: str, server: Server) -> None:
            with server.connected() as client:
                answer = self.of(client).cancel(job)
            server.show(answer, self.show)
