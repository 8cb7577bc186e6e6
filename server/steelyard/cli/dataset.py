"""``steelyard dataset``: the datasets of a server that runs, made, listed, read and deleted."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from steelyard.cli import table_files
from steelyard.cli.connecting import Server, dataset_id_of
from steelyard.cli.dataset_shown import connected, fraction_option, show_dataset, show_from_feedback
from steelyard.cli.exporting import ExportAs, export_options
from steelyard.cli.importing import command as import_command
from steelyard.cli.importing import lines_of, rows_of
from steelyard.cli.local_state import ThisMachine, show_table, state_options, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import FILE, NEW_FILE, origin_option, setting_option, stored_options
from steelyard.cli.terminal import bytes_bar, printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.client.dataset_calls import FoundRowsAnswer
    from steelyard.client.row_sources import Progress
    from steelyard.datasets.wire import Dataset
    from steelyard.review.wire import Draft
    from steelyard.storage import State

_SHOWN_CHARACTERS = 60

_EPILOG = """\b
Examples:
  steelyard dataset create tickets.jsonl --name tickets
  steelyard dataset import tickets.xlsx --name tickets --label team
  steelyard dataset add ds_… more.jsonl
  steelyard dataset add ds_… more.xlsx --bad-rows left-out.csv
  steelyard dataset rows ds_… --partition evaluation --limit 5
  steelyard dataset download ds_… > tickets.jsonl
  steelyard dataset export ds_… --format csv --output tickets.csv
  steelyard dataset from-feedback --dataset ds_… --since 2026-11-01
  steelyard dataset guideline tickets team guideline.md
"""

_partition = click.option(
    "--partition",
    type=click.Choice(["all", "training", "evaluation"]),
    default="all",
    help="One side, or all rows.",
)
_version = click.option("--version", type=int, help="A version. [default: the latest]")
_file = click.argument("file", type=FILE, metavar="FILE")


@click.group("dataset", cls=Noun, epilog=_EPILOG, connect=connected, repeats_examples=False)
def command() -> None:
    """Make, list, read and delete the datasets of a running server.

    A FILE of create has JSON Lines: a row a line, with context, decisions, and targets or rewards.
    import takes a table, and add either. Larger files than a server takes at once are sent in
    pieces. Rows that cannot be used are left out and listed. Exit status: 0, 1 when over a tenth is
    left out without --bad-rows, or 2 when all are.
    """


@command.asks("create")
@_file
@click.option("--name", required=True, help="Name of the dataset.")
@table_files.encoding_option
@table_files.bad_rows_option
@table_files.license_option
@fraction_option
def create(
    client: Client,
    *,
    file: Path,
    name: str,
    encoding: str | None,
    bad_rows: Path | None,
    license: str | None,  # noqa: A002
    evaluation_fraction: float | None,
) -> Shown:
    """Make a dataset of a file of JSON Lines."""
    from steelyard.client.tables import create_whole

    if table_files.is_table(file):
        raise click.UsageError(
            f"{file.name} has a table, whose columns have to be chosen: use "
            f"steelyard dataset import {file} --name {name}."
        )
    rows = lines_of(file, table_files.FileReading(None, encoding, False, bad_rows))
    rows.put_license(license)
    with _progress(file) as progress:
        made = create_whole(
            client, name, rows.made, evaluation_fraction=evaluation_fraction, progress=progress
        )
        rows.show_sent(client, made)
    return made, show_dataset, rows.is_much_left_out()


command.add_command(import_command)


@command.asks("add", "dataset")
@_file
@table_files.license_option
@table_files.read_options
@fraction_option
def add(
    client: Client,
    dataset: str,
    *,
    file: Path,
    license: str | None,  # noqa: A002
    read_as: table_files.FileReading,
    evaluation_fraction: float | None,
) -> Shown:
    """Add the rows of a file as the next version: JSON Lines, or a table as dataset import reads it.

    Rows whose context has another label in the dataset are skipped and reported: corrections go
    by a draft.

    A table has a column named context, and one for each decision, named by its id.
    """
    from steelyard.client.tables import known_decisions

    with _progress(file) as progress:
        stored = client.datasets.get(dataset)
        if table_files.is_table(file):
            rows = rows_of(file, read_as, known=known_decisions(client, stored))
        else:
            rows = lines_of(file, read_as)
        rows.leave_out_relabelled(client, stored)
        rows.put_license(license)
        made = client.datasets.add_rows(
            dataset,
            rows.made.parts,
            evaluation_fraction=evaluation_fraction,
            progress=progress,
            on_refused=rows.made,
        )
        rows.show_sent(client, made)
    return made, show_dataset, rows.is_much_left_out()


@command.asks("from-feedback")
@click.option("--name", help="Name of a new dataset; give it or --dataset.")
@click.option("--dataset", help="The dataset to add to, as its next version.")
@stored_options
@click.option(
    "--decision", "decisions", multiple=True, help="Only the decision of this id; may be repeated."
)
@origin_option
@fraction_option
def from_feedback(
    client: Client,
    *,
    name: str | None,
    dataset: str | None,
    decisions: tuple[str, ...],
    **given: Any,
) -> Shown:
    """Make rows of stored decisions that got feedback: the outcome that really happened is the label.

    They are a new dataset, or the next version of one; a dataset takes each stored decision once.
    """
    if (name is None) == (dataset is None):
        raise click.UsageError("Give --name for a new dataset, or --dataset to add to one.")
    made = client.datasets.from_feedback(
        name=name, dataset_id=dataset, decisions=decisions or None, **given
    )
    return made, show_from_feedback


@command.asks("list")
@click.option("--archived", is_flag=True, help="Archived datasets instead of the others.")
def list_datasets(client: Client, *, archived: bool) -> Shown:
    """List datasets, the most recently used first."""
    return list(client.datasets.iterate(archived=archived)), _show_datasets


@command.asks("show", "dataset")
def show(client: Client, dataset: str) -> Shown:
    """Show a dataset, its decisions and how often each outcome is right."""
    return client.datasets.get(dataset), _show_detail


@command.asks("rows", "dataset")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Rows before the page.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, help="Rows of the page.")
@click.option("--text", help="Only rows with these words in the context.")
@_partition
@_version
def rows(client: Client, dataset: str, **which: Any) -> Shown:
    """Show a page of rows: contexts and labels."""
    return client.datasets.search(dataset, **which), _show_rows


@command.asks("versions", "dataset")
def versions(client: Client, dataset: str) -> Shown:
    """List the versions, the newest first."""
    return client.datasets.versions(dataset), _show_versions


@command.command("download")
@click.argument("dataset")
@click.option("--output", type=NEW_FILE, help="File to write. [default: the output stream]")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    help="JSON Lines, or a Parquet file.",
)
@_partition
@_version
@setting_option("url")
@setting_option("api_key")
def download(
    *,
    dataset: str,
    output: Path | None,
    format_: str,
    url: str | None,
    api_key: str | None,
    **which: Any,
) -> None:
    """Write every row, as JSON Lines or as a Parquet file."""
    with connected(Server(url, api_key, as_json=False)) as client:
        read = client.datasets.download if format_ == "jsonl" else client.datasets.export
        data = read(dataset_id_of(client, dataset), **which)
    if output is None:
        sys.stdout.buffer.write(data)
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise click.FileError(str(output), error.strerror) from None


@command.asks("export", "dataset")
@export_options
@_partition
@_version
def export(client: Client, dataset: str, *, export_as: ExportAs, **which: Any) -> Shown:
    """Write a version's rows as CSV, Parquet, or a folder that Hugging Face datasets loads.

    `steelyard dataset import` makes the same dataset of any of them.
    """
    return export_as.save(dataset, client.datasets.export_to, dataset, **which)


@command.asks("rename", "dataset", "name")
def rename(client: Client, dataset: str, name: str) -> Shown:
    """Rename a dataset."""
    return client.datasets.rename(dataset, name), show_dataset


@command.asks("restore", "dataset")
def restore(client: Client, dataset: str) -> Shown:
    """Take a dataset out of the archive."""
    return client.datasets.restore(dataset), show_dataset


@command.asks("archive", "dataset", options=state_options, connect=ThisMachine.state)
def archive(state: State, dataset: str) -> Shown:
    """Archive a dataset, as the server's operator.

    Works on the state of this machine directly. An archived dataset is read and downloaded as
    before, and takes no new work until it is restored.
    """
    import time

    from steelyard.datasets.store import set_dataset_archived

    now = time.time()
    if not state.write_now(lambda connection: set_dataset_archived(connection, dataset, now)):
        raise click.UsageError(f"The state has no dataset {printable(dataset)}.")
    return {"id": dataset, "archived_at": now}, f"{dataset} is archived."


@command.asks("delete", "dataset")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(client: Client, dataset: str, *, yes: bool) -> Shown:
    """Delete a dataset with every version and all rows, for good."""
    if not yes:
        name = printable(client.datasets.get(dataset).name)
        click.confirm(f"Delete {name} ({dataset}) and all of its rows for good?", abort=True)
    return client.datasets.delete(dataset), f"{dataset} is deleted."


@command.asks("diff", "dataset")
@click.option("--from", "older", type=int, help="The older version. [default: the one before]")
@click.option("--to", "newer", type=int, help="The newer version. [default: the latest]")
def diff(client: Client, dataset: str, **versions: Any) -> Shown:
    """Show the rows a version adds to an older one, and the contexts it labels otherwise."""
    return client.datasets.diff(dataset, **versions), _show_diff


@command.asks("guideline", "dataset", "decision")
@click.argument("file", type=click.File(encoding="utf-8"), required=False)
@click.option("--remove", is_flag=True, help="Take the guideline away.")
def guideline(
    client: Client, dataset: str, decision: str, *, file: TextIO | None, remove: bool
) -> Shown:
    """Make the text of FILE, Markdown, the guideline of DECISION in all rows of a dataset.

    The next version carries it; rows and labels stay. Reviewers see it beside the rows, and judges
    read it. Without FILE, the guideline is printed; - is the input stream.
    """
    from steelyard.errors import SteelyardError

    if file is not None and remove:
        raise click.UsageError("Give FILE or --remove, not both.")
    if file is None and not remove:
        return _guideline_of(client, dataset, decision), click.echo
    draft = client.drafts.create(dataset)
    try:
        text = "" if file is None else file.read().strip()
        client.drafts.edit_outcomes(draft.id, decision, guideline=text)
        return client.drafts.seal(draft.id, "version"), _show_guided
    except SteelyardError:
        client.drafts.delete(draft.id)
        raise


def _guideline_of(client: Client, dataset: str, decision: str) -> str:
    """Return the guideline of a decision in the first row that asks it."""
    asking = {"type": "asks", "decision": decision}
    rows = client.datasets.search(dataset, where=asking, limit=1).data
    if not rows:
        raise click.UsageError(f"No row asks {printable(decision)}; see steelyard dataset show.")
    [wording] = [each for each in rows[0].decisions if each["id"] == decision]
    return str(wording.get("guideline", ""))


def _show_guided(draft: Draft) -> None:
    if draft.sealed is not None:
        click.echo(f"Version {draft.sealed.version} has it in all rows.")


def _show_diff(values: dict[str, Any]) -> None:
    click.echo(
        f"version {values['from']} to {values['to']}: {values['rows']} rows and "
        f"{values['contexts']} contexts added"
    )
    expected = [
        (decision, outcome, count)
        for decision, outcomes in values["expected"].items()
        for outcome, count in outcomes.items()
    ]
    if expected:
        show_table(("DECISION", "OUTCOME", "ROWS ADDED"), expected)
    moved = [
        tuple(change[name] for name in ("decision", "before", "after", "contexts", "both"))
        for change in values["relabelled"]
    ]
    if moved:
        click.echo()
        show_table(("DECISION", "BEFORE", "AFTER", "CONTEXTS", "BOTH LABELS STAND"), moved)


def _progress(file: Path) -> AbstractContextManager[Progress]:
    """Show on a terminal how much of a file was sent."""
    return bytes_bar("sent", file.stat().st_size)


_show_datasets = table_of(
    "ID:id, NAME:name, VERSION:version, ROWS:rows, TRAINING:split.training, "
    "EVALUATION:split.evaluation, METHOD:method, MADE:created_at"
)
_show_versions = table_of(
    "VERSION:version, ROWS:rows, ADDED:added, VIA:added_via, MADE:created_at, SHA-256:sha256",
    sha256=lambda version: version.sha256[:12],
)


def _show_rows(page: FoundRowsAnswer) -> None:
    from steelyard.client.answers import expected_of, labels_of

    rows = []
    for index, row in zip(page.indexes, page.data, strict=True):
        expected = ", ".join(f"{name}: {expected_of(row, name)}" for name in labels_of(row))
        rows.append((index, _shortened(row.context), expected))
    show_table(("ROW", "CONTEXT", "EXPECTS"), rows)
    click.echo(f"{len(page.data)} of {page.total} rows, version {page.version}")


def _show_detail(dataset: Dataset) -> None:
    from msgspec import UNSET

    show_dataset(dataset)
    if dataset.prompt_tuning is UNSET:
        return
    rows = [
        (decision.decision["id"], outcome, count, decision.reason or "yes")
        for decision in dataset.prompt_tuning.decisions
        for outcome, count in decision.labels.items()
    ]
    click.echo()
    show_table(("DECISION", "OUTCOME", "TRAINING ROWS", "CAN BE TUNED"), rows)


def _shortened(context: object) -> str:
    import json

    text = context if isinstance(context, str) else json.dumps(context, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
