"""``steelyard labeling``: rows labelled by other models of a server, reviewed, made datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli import next_rows
from steelyard.cli.connecting import Server, server_options
from steelyard.cli.importing import lines_of, rows_of
from steelyard.cli.job_commands import JobCommands
from steelyard.cli.json_input import read_list
from steelyard.cli.local_state import show_table, show_time
from steelyard.cli.stored_queries import MAX_QUERIES, read_window, unsure_queries
from steelyard.cli.table_files import FileReading, has_rows, is_table, read_options
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.datasets.wire import Dataset
    from steelyard.labeling.wire import LabelingJob, LabelingResult, LabelingSource, TeacherList
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


@click.group("labeling", epilog=_EPILOG)
def command() -> None:
    """Ask other models to label rows, and make datasets of those that you accept.

    Exit status: 1 when a job that is followed has no labels to review; 3 when it has none in time.
    """


command.add_command(next_rows.command)


@command.command("teachers", epilog=_EPILOG)
@server_options
def teachers(*, server: Server) -> None:
    """List the models that may label rows."""
    with server.connected() as client:
        answer = client.labeling.teachers()
    server.show(answer, _show_teachers)


@command.command("upload", epilog=_EPILOG)
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
@server_options
def upload(
    *,
    file: str,
    name: str,
    context: tuple[str, ...],
    metadata: tuple[str, ...],
    read_as: FileReading,
    server: Server,
) -> None:
    """Upload FILE: a table as dataset import reads it, or JSON Lines of context and decisions.

    Rows of a table are asked what labeling start gives with --decisions; - reads JSON Lines from
    the input.
    """
    path = Path(file)
    is_input = file == "-"
    if not is_input and (is_table(path) or context or not _has_contexts(path)):
        rows = rows_of(path, read_as, context=context, labels=None, metadata=metadata)
    else:
        rows = lines_of(path, read_as)
    made = rows.made.without_sides()
    with server.connected() as client:
        source = client.labeling.upload(name, made.lines, on_refused=made)
        rows.show_sent(client, None)
    server.show([source], _show_sources)
    rows.exit_where_much_is_left_out()


def _has_contexts(file: Path) -> bool:
    """Return whether the first line has a row, with decisions or without."""
    with file.open("rb") as lines:
        return b'"context"' in lines.readline(_FIRST_BYTES) or has_rows(file)


@command.command("from-log", epilog=_EPILOG)
@click.option("--name", required=True, help="Name of the source.")
@click.option(
    "--since",
    "window_s",
    callback=read_window,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="Answered so long ago at most.",
)
@click.option(
    "--unsure",
    type=click.FloatRange(0, 1),
    default=0.6,
    show_default=True,
    help="Only answers whose top probability is at most this.",
)
@click.option("--model", help="Only what this model or family answered.")
@click.option("--decision", help="Only answers that are unsure of this decision.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_QUERIES),
    default=1_000,
    show_default=True,
    help="Queries at most.",
)
@server_options
def from_log(*, name: str, server: Server, **given: Any) -> None:
    """Make a source of stored answers that were unsure and got no feedback, the newest first."""
    with server.connected() as client:
        queries = unsure_queries(client, **given)
        if not queries:
            raise click.ClickException(
                "No stored answer matches; raise --unsure, or take a longer --since."
            )
        source = client.labeling.upload(name, queries)
    server.show([source], _show_sources)


@command.command("sources", epilog=_EPILOG)
@server_options
def sources(*, server: Server) -> None:
    """List the sources, the newest first."""
    with server.connected() as client:
        listed = list(client.labeling.sources())
    server.show(listed, _show_sources)


@command.command("delete", epilog=_EPILOG)
@click.argument("source")
@server_options
def delete(*, source: str, server: Server) -> None:
    """Delete SOURCE and its teachers' answers for good; its datasets stay."""
    with server.connected() as client:
        deleted = client.labeling.delete_source(source)
    server.show(deleted, lambda source_row: click.echo(f"Deleted {printable(source_row.id)}."))


@command.command("start", epilog=_EPILOG)
@click.argument("source")
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
    help="What targets are the mean of; votes by default.",
)
@click.option("--max-price", "max_price_usd", metavar="USD", help="Refuse a higher price.")
@click.option("--follow", is_flag=True, help="Wait until labels are ready.")
@server_options
def start(
    *,
    source: str,
    teacher_models: tuple[str, ...],
    decisions: Any,
    follow: bool,
    server: Server,
    **given: Any,
) -> None:
    """Ask teachers to label SOURCE; its price is held, and charged once labels are ready."""
    decision_list = read_list(decisions, "--decisions")
    with server.connected() as client:
        job = client.labeling.create(
            source, teacher_models=teacher_models or None, decisions=decision_list, **given
        )
        if follow:
            _COMMANDS.follow(client, job, server)
        else:
            server.show(job, _show_job)


@command.command("list", epilog=_EPILOG)
@click.option("--status", "statuses", multiple=True, help="Only these; may be repeated.")
@server_options
def list_jobs(*, statuses: tuple[str, ...], server: Server) -> None:
    """List labeling jobs, the newest first."""
    with server.connected() as client:
        jobs = list(client.labeling.list(status=statuses))
    server.show(jobs, _show_jobs)


@command.command("results", epilog=_EPILOG)
@click.argument("job")
@click.option("--disagreements", is_flag=True, help="Only rows on which teachers differ.")
@server_options
def results(*, job: str, disagreements: bool, server: Server) -> None:
    """List the rows of JOB with each teacher's answers."""
    with server.connected() as client:
        job_results = [
            result
            for result in client.labeling.results(job)
            if not (disagreements and result.agreement)
        ]
    server.show(job_results, _show_results)


@command.command("discard", epilog=_EPILOG)
@click.argument("job")
@server_options
def discard(*, job: str, server: Server) -> None:
    """Drop JOB, whose labels are ready, without a dataset."""
    with server.connected() as client:
        answer = client.labeling.discard(job)
    server.show(answer, _show_job)


@command.command("finalize", epilog=_EPILOG)
@click.argument("job")
@click.option("--row", "chosen", type=int, multiple=True, help="A row by its index; repeated.")
@click.option("--agreed", is_flag=True, help="Every row on which all teachers agree.")
@click.option("--all", "is_all", is_flag=True, help="Every row that has labels.")
@click.option("--evaluation-fraction", type=float, help="Share put aside. [default: 0.2]")
@server_options
def finalize(
    *,
    job: str,
    chosen: tuple[int, ...],
    agreed: bool,
    is_all: bool,
    evaluation_fraction: float | None,
    server: Server,
) -> None:
    """Make a dataset of accepted rows of JOB; the same rows again are the same dataset."""
    if bool(chosen) + agreed + is_all != 1:
        raise click.UsageError("Choose rows with one of --row, --agreed and --all.")
    with server.connected() as client:
        indices = list(chosen) or [
            result.index
            for result in client.labeling.results(job)
            if result.valid and (is_all or result.agreement)
        ]
        dataset = client.labeling.finalize(job, indices, evaluation_fraction=evaluation_fraction)
    server.show(dataset, _show_dataset)


def _show_teachers(teacher_list: TeacherList) -> None:
    if not teacher_list.available:
        click.echo(printable(str(teacher_list.reason)))
        return
    defaults = teacher_list.defaults.get("default", [])
    show_table(
        ("TEACHER", "DEFAULT"),
        [(item.id, "yes" if item.id in defaults else "") for item in teacher_list.data],
    )


def _show_sources(labeling_sources: Sequence[LabelingSource]) -> None:
    show_table(
        ("ID", "NAME", "ROWS", "UPLOADED"),
        [
            (
                labeling_source.id,
                labeling_source.name,
                labeling_source.rows,
                show_time(labeling_source.created_at),
            )
            for labeling_source in labeling_sources
        ],
    )


def _show_jobs(labeling_jobs: Sequence[LabelingJob]) -> None:
    show_table(
        ("ID", "NAME", "STATUS", "ROWS", "AGREED", "TEACHERS", "USD"),
        [
            (
                labeling_job.id,
                labeling_job.name,
                labeling_job.status,
                f"{labeling_job.completed_rows} of {labeling_job.rows}",
                labeling_job.agreement_rows,
                ", ".join(labeling_job.teacher_models),
                labeling_job.price_usd,
            )
            for labeling_job in labeling_jobs
        ],
    )


def _show_job(job: LabelingJob) -> None:
    from msgspec import UNSET

    _show_jobs([job])
    if job.error is not UNSET:
        click.echo(printable(f"{job.error} ({job.error_code})"))
    if job.dataset_id is not UNSET:
        click.echo(f"Dataset {printable(job.dataset_id)}")
    if job.decisions is UNSET or job.teachers is UNSET:
        return
    click.echo()
    show_table(
        ("DECISION", "ALPHA", "ROWS AGREED"),
        [
            (decision.decision_id, _measure_text(decision.alpha), _measure_text(decision.agreement))
            for decision in job.decisions
        ],
    )
    click.echo()
    show_table(
        ("TEACHER", "ANSWERED", "ERRORS", "WITH OTHERS"),
        [
            (teacher.model, teacher.answered, teacher.errors, _measure_text(teacher.with_others))
            for teacher in job.teachers
        ],
    )


def _show_results(labeling_results: Sequence[LabelingResult]) -> None:
    from msgspec import UNSET

    show_table(
        ("ROW", "AGREED", "LABELS", "CONTEXT"),
        [
            (
                labeling_result.index,
                "yes" if labeling_result.agreement else "no",
                "; ".join(
                    f"{teacher.model}: "
                    + (
                        "failed"
                        if teacher.labels is UNSET
                        else ", ".join(f"{name}={label}" for name, label in teacher.labels.items())
                    )
                    for teacher in labeling_result.teachers
                ),
                str(labeling_result.context)[:_SHOWN_CHARACTERS],
            )
            for labeling_result in labeling_results
        ],
    )


def _show_dataset(dataset: Dataset) -> None:
    show_table(("ID", "NAME", "ROWS"), [(dataset.id, dataset.name, dataset.rows)])


def _measure_text(measure: Measure | None) -> str:
    from steelyard.client.display_evaluations import show_measure

    return "-" if measure is None else show_measure(measure)


_COMMANDS: JobCommands[LabelingJob] = JobCommands(
    of=lambda client: client.labeling,
    metavar="JOB",
    epilog=_EPILOG,
    show=_show_job,
    is_done=lambda job: job.status in {"review_ready", "finalized"},
)
_COMMANDS.add_to(
    command,
    show="Show JOB: how far it is, and how far its teachers agree.",
    follow="Wait until the labels of JOB are ready, with a live bar.",
    cancel="Stop JOB; nothing is charged unless its labels were ready.",
)
