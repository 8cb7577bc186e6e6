"""``steelyard tune``: a decision's wording rewritten on a dataset, and the rewrite proved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.job_commands import JobCommands
from steelyard.cli.local_state import show_rows, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.prompt_tuning.wire import PromptTuningJob, TuningResult

_EPILOG = """\b
Examples:
  steelyard tune start ds_01k… --decision team --follow
  steelyard tune start ds_01k… --decision team --effort thorough --max-price 0.50
  steelyard tune show pt_01k… --json
  steelyard tune dismiss pt_01k…
"""


@click.group("tune", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Rewrite a decision's wording on a dataset's rows, and prove it on rows put aside.

    Exit status: 1 when a job that is followed did not succeed; 3 when it has not ended in time.
    """


@command.asks("start", "dataset")
@click.option("--decision", help="Id of the decision. [default: the only one]")
@click.option("--model", help="A base model, or a family that answers. [default: the default base]")
@click.option(
    "--effort",
    type=click.Choice(("standard", "thorough")),
    default="standard",
    help="Searches at most 4 rounds, or 12.",
)
@click.option("--max-price", "max_price_usd", metavar="USD", help="Refuse a higher price.")
@click.option("--follow", is_flag=True, help="Wait until it has ended.")
def start(client: Client, dataset: str, *, follow: bool, **given: Any) -> Shown:
    """Tune a decision's wording on DATASET; its price is held, and charged for an improvement."""
    return _COMMANDS.begun(client, client.prompt_tuning.create(dataset, **given), follow=follow)


@command.asks("list")
@click.option("--dataset", "dataset_id", help="Only those on this dataset.")
@click.option("--status", "statuses", multiple=True, help="Only these; may be repeated.")
def list_jobs(client: Client, *, dataset_id: str | None, statuses: tuple[str, ...]) -> Shown:
    """List the jobs, the newest first."""
    return list(client.prompt_tuning.list(dataset_id=dataset_id, status=statuses)), _show_jobs


@command.asks("dismiss", "job")
@click.option("--undo", is_flag=True, help="List them again.")
def dismiss(client: Client, job: str, *, undo: bool) -> Shown:
    """Take the labels that JOB doubts off the dataset's list; its result keeps them."""
    return client.prompt_tuning.dismiss_label_issues(job, dismissed=not undo), _show_job


_show_jobs = table_of(
    "ID:id, DATASET:dataset_id, DECISION:decision, MODEL:model, STATUS:status, VERDICT:result, "
    "USD:price_usd",
    result=lambda job: None if job.result is None else job.result.verdict,
)


def _show_job(job: PromptTuningJob) -> None:
    _show_jobs(job)
    if job.error is not None:
        click.echo(printable(f"{job.error} ({job.error_code})"))
    if job.progress is not None:
        now = job.progress
        click.echo(f"{now.phase}, round {now.round} of {now.rounds}")
    if job.result is not None:
        _show_result(job.result)


def _show_result(result: TuningResult) -> None:
    for reason in result.reasons:
        click.echo(printable(reason))
    if result.changes:
        click.echo()
        show_rows(result.changes, "PART:part, BEFORE:before, AFTER:after")
    if result.test is not None and result.candidate is not None:
        test = result.test
        click.echo()
        click.echo(
            f"On {test.rows} evaluation rows: log loss {test.original_loss:.4f} before, "
            f"{test.tuned_loss:.4f} after (gain {test.gain:.4f}, 95 % from {test.gain_low:.4f} to "
            f"{test.gain_high:.4f}; noise {result.noise_band:.4f}); right {test.original_accuracy:.3f} "
            f"before, {test.tuned_accuracy:.3f} after."
        )
    if result.label_issues:
        click.echo()
        show_rows(result.label_issues, "LABEL TO CHECK:row, WHY:reason")


_COMMANDS: JobCommands[PromptTuningJob] = JobCommands(
    of=lambda client: client.prompt_tuning,
    show=_show_job,
    is_done=lambda job: job.status == "succeeded",
)
_COMMANDS.add_to(
    command,
    show="Show JOB: how far it is, what it changed and what that is worth.",
    follow="Wait until JOB has ended, with a live bar.",
    cancel="Stop JOB; nothing is charged.",
)
