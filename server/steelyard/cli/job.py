"""``steelyard job``: the jobs of a server, listed, followed and stopped, and the gates of fine-tunes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.job_commands import JobCommands
from steelyard.cli.local_state import show_table, show_time, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.evaluations.gate_wire import Gate
    from steelyard.families.fine_tune_wire import Job
    from steelyard.wire.jobs import AnyJob, JobSummary

_EPILOG = """\b
Examples:
  steelyard job list --kind evaluation --status running
  steelyard job follow ftj_01k…
  steelyard job events ftj_01k…
"""
_STATUSES = ("queued", "running", "cancelling", "succeeded", "review_ready", "failed", "cancelled")


@click.group("job", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """List, follow and stop jobs: fine-tunes, evaluations, labeling, comparisons, tuning and maps.

    Exit status of follow: 0 when the job succeeded, 1 when it failed or was cancelled. Of a fine-tune
    1 too when its model did not join the family, since the gate did not pass it.
    """


@command.asks("list")
@click.option(
    "--status", multiple=True, type=click.Choice(_STATUSES), help="Only these; may be repeated."
)
@click.option("--kind", multiple=True, help="Only these, such as fine_tune; may be repeated.")
@click.option("--dataset", help="Only those on this dataset.")
def list_jobs(client: Client, *, dataset: str | None, **which: Any) -> Shown:
    """List jobs of all kinds, the newest first."""
    jobs = list(client.jobs.all(dataset_id=dataset, **which))
    columns = ("ID", "KIND", "OF", "STATUS", "PROGRESS", "QUEUED")
    return jobs, lambda jobs: show_table(columns, [_row(job) for job in jobs])


def _row(job: JobSummary) -> tuple[str | None, ...]:
    now = job.progress
    progress = "" if now is None else f"{now.phase}, {now.step:,} of {now.steps:,}"
    return job.id, job.noun, job.of, job.ended or job.status, progress, show_time(job.created_at)


@command.asks("events", "job")
def events(client: Client, job: str) -> Shown:
    """List the events of a fine-tune, the oldest first."""
    return client.jobs.events(job), table_of(":seq, AT:created_at, TYPE:type, MESSAGE:message")


def show_job(job: Job | AnyJob) -> None:
    """Print a job's progress; of a fine-tune also its gate's verdict once there is one."""
    from steelyard.client.display_families import job_facts
    from steelyard.families.fine_tune_wire import Job

    if not isinstance(job, Job):
        of = job.summary
        names = ("id", "kind", "of", "status", "progress", "queued")
        facts = [*zip(names, _row(of), strict=True), ("models", ", ".join(of.models))]
        show_table(("FIELD", "VALUE"), facts)
        return
    show_table(("FIELD", "VALUE"), job_facts(job))
    if job.gate is not None:
        click.echo()
        show_gate(job.gate)


def _next_of(client: Client, job: Job | AnyJob) -> str | None:
    """Return the fine-tune that follows one of words alone, which answers meanwhile."""
    from msgspec import UNSET

    from steelyard.families.fine_tune_wire import Job

    if not isinstance(job, Job) or job.family is None or job.status != "succeeded":
        return None
    if job.hyperparameters.first is UNSET or job.family_deleted:
        return None
    jobs = client.families.get(job.family).jobs or []
    next_id = next((other.id for other in jobs if other.follows == job.id), None)
    if job.has_joined and next_id is not None:
        click.echo(f"{printable(job.family)} answers, by words alone.", err=True)
    return next_id


#: Jobs of all kinds; fine-tunes are followed by the commands that queue them too.
FINE_TUNES: JobCommands[Any] = JobCommands(
    of=lambda client: client.jobs,
    show=show_job,
    is_done=lambda job: getattr(job, "has_joined", job.status in {"succeeded", "review_ready"}),
    next_of=_next_of,
)
FINE_TUNES.add_to(
    command,
    show="Show JOB: how far it is, then its outcome; of a fine-tune the gate's verdict.",
    follow="""Wait until JOB has ended, with a live bar, and show its outcome.

    After a fine-tune of words that answer first, the one that follows it is waited for too.

    Exit status: 0 when it succeeded, and a fine-tune's model joined its family; 1 when the gate did
    not pass it, or the job failed or was cancelled; 3 when it has not ended in time.
    """,
    cancel="Ask JOB to stop; only a job that succeeds is charged.",
)


def show_gate(gate: Gate) -> None:
    """Print a gate's verdict: its reasons, the changes with 95 % intervals, and flips."""
    from steelyard.client.display_gates import GATE_COLUMNS, group_rows, slice_rows, verdict_of
    from steelyard.evaluations.gate_wire import labels_of, reader_of, unchanged_of, words_of

    click.echo(f"{verdict_of(gate)}, against the {gate.against}.")
    for text in gate.sentences:
        click.echo(f"  {printable(text)}")
    for note in (unchanged_of(gate), labels_of(gate), words_of(gate), reader_of(gate)):
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
