"""``steelyard job``: the fine-tunes of a server and their gates, listed, followed and stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.job_commands import JobCommands
from steelyard.cli.local_state import show_table, show_time
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.evaluations.gate_wire import Gate
    from steelyard.families.fine_tune_wire import Job, JobEvents

_EPILOG = """\b
Examples:
  steelyard job list --status running
  steelyard job follow ftj_01k…
  steelyard job events ftj_01k…
"""
_STATUSES = ("queued", "running", "cancelling", "succeeded", "failed", "cancelled")


@click.group("job", epilog=_EPILOG)
def command() -> None:
    """List, follow and stop the fine-tunes of families.

    `steelyard family create` and `steelyard family continue` queue them. Exit status of follow: 0
    when the gate passed the model and it joined its family, 1 when it did not: the gate did not
    pass it, or the fine-tune failed or was cancelled.
    """


@command.command("list", epilog=_EPILOG)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(_STATUSES),
    help="Only these; may be repeated.",
)
@click.option("--dataset", help="Only those that train on this dataset.")
@server_options
def list_jobs(*, statuses: tuple[str, ...], dataset: str | None, server: Server) -> None:
    """List fine-tunes, the newest first."""
    from steelyard.client.display_families import JOB_COLUMNS, job_rows

    with server.connected() as client:
        jobs = list(client.jobs.list(status=statuses, dataset_id=dataset))
    columns = [name.upper() for name in JOB_COLUMNS]
    server.show(jobs, lambda jobs: show_table(columns, job_rows(jobs)))


@command.command("events", epilog=_EPILOG)
@click.argument("job")
@server_options
def events(*, job: str, server: Server) -> None:
    """List the events of JOB, the oldest first."""
    with server.connected() as client:
        answer = client.jobs.events(job)
    server.show(answer, _show_events)


def _show_events(events: JobEvents) -> None:
    show_table(
        ("", "AT", "TYPE", "MESSAGE"),
        [
            (event.seq, show_time(event.created_at), event.type, event.message)
            for event in events.data
        ],
    )


def show_job(job: Job) -> None:
    """Print the facts of a fine-tune, and its gate's verdict once there is one."""
    from steelyard.client.display_families import job_facts

    show_table(("FIELD", "VALUE"), job_facts(job))
    if job.gate is not None:
        click.echo()
        show_gate(job.gate)


#: Fine-tunes, which are followed by what queues them too.
FINE_TUNES: JobCommands[Job] = JobCommands(
    of=lambda client: client.jobs,
    metavar="JOB",
    epilog=_EPILOG,
    show=show_job,
    is_done=lambda job: job.has_joined,
)
FINE_TUNES.add_to(
    command,
    show="Show JOB: how far it is, then its outcome and the gate's verdict.",
    follow="""Wait until JOB has ended, with a live bar, and show the gate's verdict.

    Exit status: 0 when its model joined its family; 1 when the gate did not pass it, or the
    fine-tune failed or was cancelled; 3 when it has not ended in time.
    """,
    cancel="Ask JOB to stop; only a fine-tune that succeeds is charged.",
)


def show_gate(gate: Gate) -> None:
    """Print a gate's verdict: its reasons, the changes with 95 % intervals, and flips."""
    from steelyard.client.display_gates import GATE_COLUMNS, group_rows, slice_rows, verdict_of
    from steelyard.evaluations.gate_wire import labels_of, unchanged_of

    click.echo(f"{verdict_of(gate)}, against the {gate.against}.")
    for text in gate.sentences:
        click.echo(f"  {printable(text)}")
    for note in (unchanged_of(gate), labels_of(gate)):
        if note is not None:
            click.echo(f"  {printable(note)}")
    columns = tuple(name.upper() for name in GATE_COLUMNS)
    rows = list(group_rows(gate))
    if rows:
        click.echo()
        show_table(("ROWS", *columns), rows)
    slices = slice_rows(gate)
    if slices:
        click.echo()
        show_table(("DECISION", *columns), slices)
