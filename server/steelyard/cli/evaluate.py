"""``steelyard evaluate``: score models on a dataset at a server, and show the measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.connecting import dataset_id_of
from steelyard.cli.importing import FileRows, lines_of, rows_of
from steelyard.cli.local_state import show_rows, show_table
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import ORIGINS
from steelyard.cli.table_files import FileReading, has_rows, is_table, read_options
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.evaluations.wire import (
        Evaluation,
        EvaluationComparison,
        EvaluationDetail,
        Measures,
        PairedMeasures,
    )

_BAR_WIDTH = 24
#: Slices and flips that a table shows; --json shows all.
_SHOWN_SLICES, _SHOWN_FLIPS = 8, 10

_EPILOG = """\b
Examples:
  steelyard evaluate support_triage --follow
  steelyard evaluate held-out.csv --label team --model steelyard-base-2 --follow
  steelyard evaluate list ds_01k… --status succeeded
  steelyard evaluate show eval_01k…
  steelyard evaluate compare eval_01k… eval_01m…
"""


_by = click.option(
    "--by",
    type=ORIGINS,
    help="Only decisions whose labels came from there, by `by` of the rows' metadata.",
)


class StartsByDefault(Noun):
    """A group whose first argument may be a dataset's id instead of a command's name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take words that name no command for the arguments of ``start``."""
        if args and args[0] not in self.commands:
            args = ["start", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave options that come before the dataset's id to ``start``."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["start", *args]
        return super().parse_args(ctx, args)


@click.group("evaluate", cls=StartsByDefault, epilog=_EPILOG)
def command() -> None:
    """Score models on a dataset's evaluation rows, and show the measures.

    Asks the server of the setting url, with the key of the variable STEELYARD_API_KEY. Exit status:
    1 when an evaluation that is followed does not succeed.
    """


@command.asks("start")
@click.argument("source", metavar="DATASET")
@click.option(
    "--model",
    "models",
    multiple=True,
    help="A model; may be repeated. [default: the server's base model]",
)
@click.option("--follow", is_flag=True, help="Wait until all have ended, and show the figures.")
@click.option(
    "--context", multiple=True, help="Of a file: column with the context. [default: found]"
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="COLUMN[=QUESTION]",
    help="Of a file: column with the right outcomes; may be repeated. [default: found]",
)
@read_options
def start(
    client: Client,
    *,
    source: str,
    models: tuple[str, ...],
    follow: bool,
    context: tuple[str, ...],
    labels: tuple[str, ...],
    read_as: FileReading,
) -> Shown:
    """Score models on DATASET (the word start may be left out); earlier scores are reused.

    DATASET may be a file or a folder, as dataset import or dataset create takes it. Its rows become
    the evaluation side of a dataset that has its name: those of test and validation where it has
    such splits, else all.
    """
    is_file = not source.startswith("ds_") and Path(source).exists()
    if not is_file and is_table(Path(source)):
        raise click.UsageError(f"There is no file {source}; give a file or a dataset's id.")
    rows: FileRows | None = None
    if is_file:
        rows, dataset = _store_file(client, Path(source), read_as, context, labels)
    else:
        dataset = dataset_id_of(client, source)
    if not models:
        choices = client.models.choices()
        models = tuple(choice.name for choice in choices if choice.kind == "base")[:1]
    evaluations: Sequence[Evaluation] = client.evaluations.create(dataset, models).data
    if follow:
        _show_followed(evaluations)
        evaluations = [client.evaluations.wait(evaluation) for evaluation in evaluations]

    def show_started(started: Sequence[Evaluation]) -> None:
        _show_evaluations(started)
        if follow and len(started) == 1 and started[0].status == "succeeded":
            click.echo()
            detail = client.evaluations.detail(started[0].id)
            _show_detail(detail, _people_of(client, started[0]))

    is_failed = follow and any(evaluation.status != "succeeded" for evaluation in evaluations)
    is_much_left_out = rows is not None and rows.is_much_left_out()
    return evaluations, show_started, is_failed or is_much_left_out


def _store_file(
    client: Client, file: Path, read_as: FileReading, context: Sequence[str], labels: Sequence[str]
) -> tuple[FileRows, str]:
    """Make a dataset of a file's rows for evaluation; return them and its id."""
    if file.is_file() and has_rows(file):
        rows = lines_of(file, read_as)
    else:
        rows = rows_of(file, read_as, None, context, labels, for_evaluation=True)
    made = rows.made.without_sides()
    stored = client.datasets.create(file.stem, evaluation=made.lines, on_refused=made)
    rows.show_sent(client, stored)
    return rows, stored.id


@command.asks("list", "dataset")
@click.option("--status", "statuses", multiple=True, help="Only these; may be repeated.")
def list_evaluations(client: Client, dataset: str, statuses: tuple[str, ...]) -> Shown:
    """List the evaluations of DATASET, the newest first."""
    return list(client.evaluations.list(dataset, status=statuses)), _show_evaluations


@command.asks("show", "evaluation")
@_by
def show(client: Client, evaluation: str, by: str | None) -> Shown:
    """Show the measures of EVALUATION, with 95 % intervals and reliability.

    With --by the figures of one origin of labels alone, and how many labels came from where.
    """
    answer = client.evaluations.get(evaluation)
    if answer.status != "succeeded":
        return answer, _show_evaluations
    detail = client.evaluations.detail(evaluation)

    def show_measures(measured: Any) -> None:
        _show_evaluations(answer)
        click.echo()
        if by is None:
            _show_detail(measured, _people_of(client, answer))
        else:
            _show_measures([(f"labelled by {by}", measured.metrics)])

    return detail if by is None else _slice_of(detail.slices, by), show_measures


@command.asks("cancel", "evaluation")
def cancel(client: Client, evaluation: str) -> Shown:
    """Stop EVALUATION; its predictions are kept."""
    return client.evaluations.cancel(evaluation), _show_evaluations


@command.asks("retry", "evaluation")
@click.option("--follow", is_flag=True, help="Wait until it has ended.")
def retry(client: Client, evaluation: str, *, follow: bool) -> Shown:
    """Resume EVALUATION after it failed or was cancelled, from its stored scores."""
    answer = client.evaluations.retry(evaluation)
    if follow:
        _show_followed([answer])
        answer = client.evaluations.wait(answer)
    return answer, _show_evaluations, follow and answer.status != "succeeded"


@command.asks("compare", "before", "after")
@_by
def compare(client: Client, before: str, after: str, by: str | None) -> Shown:
    """Compare evaluation AFTER with BEFORE on the decisions that both scored.

    With --by on those whose labels came from there alone.
    """
    comparison = client.evaluations.compare(before, after)
    if by is not None:
        return _slice_of(comparison.groups, by), lambda slice_: _show_paired(slice_.metrics)
    return comparison, _show_comparison


def _show_followed(evaluations: Sequence[Evaluation]) -> None:
    """Print the ids that are waited for, so that they can be looked up however the wait ends."""
    click.echo(
        f"Following {', '.join(printable(evaluation.id) for evaluation in evaluations)}", err=True
    )


def _show_evaluations(evaluations: Evaluation | Sequence[Evaluation]) -> None:
    from steelyard.client.display_evaluations import show_metrics

    show_rows(
        evaluations,
        "ID:id, MODEL:model_label, STATUS:status, ROWS:completed_rows, ASKED:created_at, "
        "METRICS:metrics",
        completed_rows=lambda each: f"{each.completed_rows} of {each.evaluation_rows}",
        metrics=show_metrics,
    )


def _show_measures(lines: Sequence[tuple[str, Measures]]) -> None:
    from steelyard.client.display_evaluations import MEASURES, measure_of, show_measure

    names = [name for name in MEASURES if measure_of(lines[0][1], name) is not None]
    show_table(
        ("DECISIONS", "N", *(name.upper() for name in names)),
        [
            (name, measures.n, *(show_measure(measure_of(measures, measure)) for measure in names))
            for name, measures in lines
        ],
    )


def _people_of(client: Client, evaluation: Evaluation) -> str | None:
    """Return in words how far people agree on the rows of an evaluation's version."""
    from steelyard.client.display_evaluations import people_note
    from steelyard.errors import DatasetDeletedError, NotFoundError

    try:
        people = client.drafts.people_agreement(evaluation.dataset_id, evaluation.dataset_version)
    except (NotFoundError, DatasetDeletedError):  # or a server before 0.4
        return None
    return people_note(people)


def _show_detail(detail: EvaluationDetail, people: str | None) -> None:
    from msgspec import UNSET

    from steelyard.client.display_evaluations import labels_note, show_measure, steps_note

    lines = [("all", detail.overall)]
    lines += [(decision.decision_id, decision.metrics) for decision in detail.decisions]
    for table in detail.slices:
        lines += [
            (f"{table.by}: {slice_.value}", slice_.metrics)
            for slice_ in table.slices[:_SHOWN_SLICES]
        ]
    _show_measures(lines)
    if people is not None and detail.overall.accuracy is not UNSET:
        click.echo(people)
    for note in (labels_note(detail), steps_note(detail)):
        if note is not None:
            click.echo(printable(note))
    if detail.sample is not None:
        click.echo(
            f"These rest on {detail.sample:.2%} of the contexts; the evaluation's metrics are of all."
        )
    if detail.reliability is UNSET:
        return
    click.echo()
    block = _block()
    show_table(
        ("PROMISED", "N", "MEAN", "ACCURACY", ""),
        [
            (
                f"{row.low:.1f} to {row.high:.1f}",
                row.n,
                f"{row.mean_top_probability:.3f}",
                show_measure(row.accuracy),
                block * round(row.accuracy.value * _BAR_WIDTH),
            )
            for row in detail.reliability
            if row.accuracy is not None and row.mean_top_probability is not None
        ],
    )


def _slice_of(tables: Sequence[Any], by: str) -> Any:
    """Return the slice of the decisions whose labels came from one origin."""
    slices = [slice_ for table in tables if table.by == "metadata.by" for slice_ in table.slices]
    for slice_ in slices:
        if slice_.value == by:
            return slice_
    known = ", ".join(slice_.value for slice_ in slices)
    raise click.UsageError(
        f"No row says that its labels came from {by}; "
        + (f"there are {known}." if known else "rows say it as by in their metadata.")
    )


def _show_comparison(comparison: EvaluationComparison) -> None:
    from steelyard.client.display_evaluations import flip_cells

    _show_paired(comparison.overall)
    if not comparison.flipped:
        return
    click.echo()
    show_table(
        ("CONTEXT", "DECISION", "FLIP", "RIGHT", "BEFORE", "AFTER"),
        [
            (flip.context_sha256[:12], *flip_cells(flip))
            for flip in comparison.flipped[:_SHOWN_FLIPS]
        ],
    )
    left = comparison.flipped_total - min(len(comparison.flipped), _SHOWN_FLIPS)
    if left:
        click.echo(printable(f"and {left} more; --json shows them"))


def _show_paired(overall: PairedMeasures) -> None:
    from steelyard.client.display_evaluations import change_rows

    flips = overall.flips
    click.echo(
        f"{overall.n} decisions on {overall.contexts} contexts: {flips.fixed} fixed, "
        f"{flips.broken} broken, p = {overall.p_value:.3g}"
    )
    show_table(("MEASURE", "BEFORE", "AFTER", "CHANGE"), change_rows(overall))


def _block() -> str:
    import sys

    return "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
