"""``steelyard labeling``: rows labelled by other models of a server, reviewed, made datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli import next_rows
from steelyard.cli.importing import lines_of, rows_of
from steelyard.cli.job_commands import JobCommands
from steelyard.cli.local_state import show_rows, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import SHARE, read_list
from steelyard.cli.stored_queries import MAX_QUERIES, read_window, unsure_queries
from steelyard.cli.table_files import FileReading, has_rows, is_table, read_options
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.labeling.wire import LabelingJob, TeacherList
    from steelyard.wire.measures import Measure

_EPILOG = """\b
Examples:
  steelyard labeling teachers
  steelyard labeling upload queries.jsonl --name tickets
  steelyard labeling upload mails.xlsx --name mails --context body --metadata id
  steelyard labeling from-log --name unsure --since 7d --unsure 0.6
  steelyard labeling next src_01k… --n 200 --output next.jsonl
  steelyard labeling start src_01k… --decisions decisions.json --follow
  steelyard labeling results lab_01k… --disagreements
  steelyard labeling finalize lab_01k… --agreed
"""
_SHOWN_CHARACTERS = 60
#: Bytes of a file in which the first field of a row is looked for.
_FIRST_BYTES = 1 << 16


@click.group("labeling", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Ask other models to label rows, and make datasets of those that you accept.

    Exit status: 1 when a job that is followed has no labels to review; 3 when it has none in time.
    """


command.add_command(next_rows.command)


@command.asks("teachers")
def teachers(client: Client) -> Shown:
    """List the models that may label rows."""
    return client.labeling.teachers(), _show_teachers


@command.asks("upload")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--name", required=True, help="Name of the source.")
@click.option(
    "--context",
    multiple=True,
    help="Of a table: column with the context; several make an object. [default: found]",
)
@click.option(
    "--metadata",
    multiple=True,
    help="Of a table: column that is kept beside each row; may be repeated.",
)
@read_options
def upload(
    client: Client,
    *,
    file: str,
    name: str,
    context: tuple[str, ...],
    metadata: tuple[str, ...],
    read_as: FileReading,
) -> Shown:
    """Upload FILE: a table as dataset import reads it, or JSON Lines of context and decisions.

    Rows of a table are asked the --decisions of labeling start; - reads JSON Lines from the input.
    """
    path = Path(file)
    is_input = file == "-"
    if not is_input and (is_table(path) or context or not _has_contexts(path)):
        rows = rows_of(path, read_as, context=context, labels=None, metadata=metadata)
    else:
        rows = lines_of(path, read_as)
    made = rows.made.without_sides()
    source = client.labeling.upload(name, made.lines, on_refused=made)
    rows.show_sent(client, None)
    return [source], _show_sources, rows.is_much_left_out()


def _has_contexts(file: Path) -> bool:
    """Return whether the first line has a row, with decisions or without."""
    with file.open("rb") as lines:
        return b'"context"' in lines.readline(_FIRST_BYTES) or has_rows(file)


@command.asks("from-log")
@click.option("--name", required=True, help="Name of the source.")
@click.option(
    "--since",
    "window_s",
    callback=read_window,
    default="7d",
    metavar="TIME",
    help="Answered so long ago at most.",
)
@click.option(
    "--unsure", type=SHARE, default=0.6, help="Only answers whose top probability is at most this."
)
@click.option("--model", help="Only what this model or family answered.")
@click.option("--decision", help="Only answers that are unsure of this decision.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_QUERIES), default=1_000, help="Queries at most."
)
def from_log(client: Client, *, name: str, **given: Any) -> Shown:
    """Make a source of stored answers that were unsure and got no feedback, the newest first."""
    queries = unsure_queries(client, **given)
    if not queries:
        raise click.ClickException(
            "No stored answer matches; raise --unsure, or take a longer --since."
        )
    return [client.labeling.upload(name, queries)], _show_sources


@command.asks("sources")
def sources(client: Client) -> Shown:
    """List the sources, the newest first."""
    return list(client.labeling.sources()), _show_sources


@command.asks("delete", "source")
def delete(client: Client, source: str) -> Shown:
    """Delete SOURCE and its teachers' answers for good; its datasets stay."""
    deleted = client.labeling.delete_source(source)
    return deleted, f"Deleted {printable(deleted.id)}."


@command.asks("start", "source")
@click.option("--teacher", "teacher_models", multiple=True, help="A teacher; may be repeated.")
@click.option(
    "--decisions",
    type=click.File("rb"),
    help="JSON of decisions for the rows that carry none.",
)
@click.option("--name", help="Of the job and its dataset. [default: the source's]")
@click.option(
    "--weighting",
    type=click.Choice(("votes", "probabilities")),
    default="votes",
    help="What targets are the mean of.",
)
@click.option("--max-price", "max_price_usd", metavar="USD", help="Refuse a higher price.")
@click.option("--follow", is_flag=True, help="Wait until labels are ready.")
def start(
    client: Client,
    source: str,
    *,
    teacher_models: tuple[str, ...],
    decisions: Any,
    follow: bool,
    **given: Any,
) -> Shown:
    """Ask teachers to label SOURCE; its price is held, and charged once labels are ready."""
    given["decisions"] = read_list(decisions, "--decisions")
    job = client.labeling.create(source, teacher_models=teacher_models or None, **given)
    return _COMMANDS.begun(client, job, follow=follow)


@command.asks("list")
@click.option("--status", "statuses", multiple=True, help="Only these; may be repeated.")
def list_jobs(client: Client, statuses: tuple[str, ...]) -> Shown:
    """List labeling jobs, the newest first."""
    return list(client.labeling.list(status=statuses)), _show_jobs


@command.asks("results", "job")
@click.option("--disagreements", is_flag=True, help="Only rows on which teachers differ.")
def results(client: Client, job: str, *, disagreements: bool) -> Shown:
    """List the rows of JOB with each teacher's answers."""
    every = client.labeling.results(job)
    return [row for row in every if not (disagreements and row.agreement)], _show_results


@command.asks("discard", "job")
def discard(client: Client, job: str) -> Shown:
    """Drop JOB, whose labels are ready, without a dataset."""
    return client.labeling.discard(job), _show_job


@command.asks("finalize", "job")
@click.option("--row", "chosen", type=int, multiple=True, help="A row by its index; repeated.")
@click.option("--agreed", is_flag=True, help="Every row on which all teachers agree.")
@click.option("--all", "is_all", is_flag=True, help="Every row that has labels.")
@click.option("--evaluation-fraction", type=float, help="Share put aside. [default: 0.2]")
def finalize(
    client: Client, job: str, *, chosen: tuple[int, ...], agreed: bool, is_all: bool, **given: Any
) -> Shown:
    """Make a dataset of accepted rows of JOB; the same rows again are the same dataset."""
    if bool(chosen) + agreed + is_all != 1:
        raise click.UsageError("Choose rows with one of --row, --agreed and --all.")
    indices = list(chosen) or [
        result.index
        for result in client.labeling.results(job)
        if result.valid and (is_all or result.agreement)
    ]
    dataset = client.labeling.finalize(job, indices, **given)
    return dataset, table_of("ID:id, NAME:name, ROWS:rows")


def _show_teachers(teacher_list: TeacherList) -> None:
    if not teacher_list.available:
        click.echo(printable(str(teacher_list.reason)))
        return
    defaults = teacher_list.defaults.get("default", [])
    show_rows(
        teacher_list,
        "TEACHER:id, DEFAULT:default, DOUBT:doubt",
        default=lambda teacher: "yes" if teacher.id in defaults else "",
        doubt=lambda teacher: teacher.doubt or "",
    )


_show_sources = table_of("ID:id, NAME:name, ROWS:rows, UPLOADED:created_at")
_show_jobs = table_of(
    "ID:id, NAME:name, STATUS:status, ROWS:rows, AGREED:agreement_rows, TEACHERS:teacher_models, "
    "USD:price_usd",
    rows=lambda job: f"{job.completed_rows} of {job.rows}",
    teacher_models=lambda job: ", ".join(job.teacher_models),
)


def _show_job(job: LabelingJob) -> None:
    from msgspec import UNSET

    _show_jobs(job)
    if job.error is not UNSET:
        click.echo(printable(f"{job.error} ({job.error_code})"))
    if job.dataset_id is not UNSET:
        click.echo(f"Dataset {printable(job.dataset_id)}")
    if job.decisions is UNSET or job.teachers is UNSET:
        return
    click.echo()
    show_rows(
        job.decisions,
        "DECISION:decision_id, ALPHA:alpha, ROWS AGREED:agreement",
        alpha=lambda decision: _measure_text(decision.alpha),
        agreement=lambda decision: _measure_text(decision.agreement),
    )
    click.echo()
    show_rows(
        job.teachers,
        "TEACHER:model, ANSWERED:answered, ERRORS:errors, WITH OTHERS:with_others",
        with_others=lambda teacher: _measure_text(teacher.with_others),
    )


_show_results = table_of(
    "ROW:index, AGREED:agreement, LABELS:teachers, CONTEXT:context",
    teachers=lambda result: "; ".join(map(_labels_text, result.teachers)),
    context=lambda result: str(result.context)[:_SHOWN_CHARACTERS],
)


def _labels_text(teacher: Any) -> str:
    from msgspec import UNSET

    if teacher.labels is UNSET:
        return f"{teacher.model}: failed"
    labels = ", ".join(f"{name}={label}" for name, label in teacher.labels.items())
    return f"{teacher.model}: {labels}"


def _measure_text(measure: Measure | None) -> str:
    from steelyard.client.display_evaluations import show_measure

    return "-" if measure is None else show_measure(measure)


_COMMANDS: JobCommands[LabelingJob] = JobCommands(
    of=lambda client: client.labeling,
    show=_show_job,
    is_done=lambda job: job.status in {"review_ready", "finalized"},
)
_COMMANDS.add_to(
    command,
    show="Show JOB: how far it is, and how far its teachers agree.",
    follow="Wait until the labels of JOB are ready, with a live bar.",
    cancel="Stop JOB; nothing is charged unless its labels were ready.",
)
