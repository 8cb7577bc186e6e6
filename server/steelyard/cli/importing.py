"""``steelyard dataset import``: a table of any common format becomes a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.dataset_shown import connected, fraction_option, show_dataset
from steelyard.cli.failures import FAILED
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import FILE
from steelyard.cli.table_files import (
    FileReading,
    has_rows,
    license_option,
    read_options,
    show_read,
    show_refused,
)
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.client.tables import Converted, Label, Mapping, Table
    from steelyard.datasets.wire import Dataset

#: Share of the rows of a file that may be left out, where no file for them is named.
_MOST_LEFT_OUT = 0.1
_EPILOG = """\b
Examples:
  steelyard dataset import tickets.csv --dry-run
  steelyard dataset import tickets.xlsx --name tickets --context message \\
    --label "team=Which team should own this ticket?" --bad-rows left-out.csv
  steelyard dataset import train.tsv --label 1 --names labels.txt
  steelyard dataset import saved_by_datasets/ --name emotions
  steelyard dataset import exported.json --from argilla --name reviewed
"""


@asking("import", connect=connected, epilog=_EPILOG)
@click.argument("file", type=click.Path(exists=True, path_type=Path), metavar="FILE")
@click.option("--name", help="Name of the dataset. [default: the file's]")
@click.option(
    "--from",
    "shape",
    type=click.Choice(
        [
            *("argilla", "label-studio", "prodigy", "doccano", "labelbox", "langfuse", "promptfoo"),
            *("openai-chat", "ground-truth", "onehot"),
        ],
    ),
    help="The program that wrote the file. [default: found]",
)
@click.option(
    "--context",
    multiple=True,
    help="Column with the context; several make an object. [default: found]",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="COLUMN[=QUESTION]",
    help="Column with the right outcomes, and what is asked; may be repeated. [default: found]",
)
@click.option(
    "--names",
    type=FILE,
    help="File with the names of labels that are numbers: one a line from 0, or JSON.",
)
@click.option(
    "--no-label",
    multiple=True,
    metavar="VALUE",
    help="Value of a label's column that means no label; '' for empty cells alone. [default: -1, NA "
    "and None among names]",
)
@click.option(
    "--metadata", multiple=True, help="Column that is kept beside each row; may be repeated."
)
@click.option(
    "--split",
    help="Column with the split of each row; test and validation are for evaluation. [default: found]",
)
@license_option
@read_options
@click.option("--dry-run", is_flag=True, help="Show what would be imported; store nothing.")
@fraction_option
def command(
    client: Client,
    *,
    file: Path,
    name: str | None,
    shape: str | None,
    license: str | None,  # noqa: A002
    read_as: FileReading,
    dry_run: bool,
    evaluation_fraction: float | None,
    **columns: Any,
) -> Shown:
    """Make a dataset of a table: CSV, TSV, Excel, JSON Lines, Parquet or a Hugging Face folder.

    Encoding and separator are found. The column with the longest texts is the context and those
    with few different values are labels, each a decision whose outcomes are its values; --context
    and --label say otherwise. A column of lists with several names becomes a yes or no decision for
    each name. Splits of folders, file names or a column are kept as sides. Rows that cannot be used
    are skipped and reported.
    """
    from steelyard.client.tables import create_whole

    if shape in (None, "onehot") and file.is_file() and has_rows(file):
        rows = lines_of(file, read_as)
    elif shape == "onehot":
        raise click.UsageError(
            f"{file.name} is not an export of OneHot, whose lines have context and decisions. Leave "
            "--from out to read it as a table."
        )
    else:
        rows = rows_of(file, read_as, shape, **columns)
    if dry_run:
        rows.show_checked()
        raise click.exceptions.Exit(FAILED if rows.is_much_left_out() else 0)
    rows.put_license(license)
    stored = create_whole(
        client, name or file.stem, rows.made, evaluation_fraction=evaluation_fraction
    )
    rows.show_sent(client, stored)
    return stored, show_dataset, rows.is_much_left_out()


def lines_of(file: Path, read_as: FileReading) -> FileRows:
    """Return the rows of a file that have their decisions already, and show how it was read."""
    made = read_as.lines(file)
    taken = f"{made.n_rows:,} rows have their decisions and are taken as they are."
    show_read(made.table, [*(f"  sides    {note}" for note in made.notes), taken], made.refused)
    return FileRows(made, read_as)


def rows_of(
    file: Path,
    read_as: FileReading,
    shape: str | None = None,
    context: Sequence[str] = (),
    labels: Sequence[str] | None = (),
    metadata: Sequence[str] = (),
    split: str | None = None,
    names: Path | None = None,
    no_label: Sequence[str] = (),
    known: Sequence[dict[str, Any]] = (),
    *,
    for_evaluation: bool = False,
) -> FileRows:
    """Return the rows of a table, and show how it was read; ``labels`` is ``None`` for labeling."""
    from steelyard.client.tables import convert, is_exported, read_exported, with_raters

    table = read_as.read(file, shape)
    try:
        if labels is not None and not labels:
            table = with_raters(table, [str(decision["id"]) for decision in known])
        if labels is not None and is_exported(table) and not (context or labels or metadata):
            made = read_exported(table, for_evaluation=for_evaluation)
            show_exported(made)
        else:
            mapping = choose_columns(table, context, labels, metadata, split, no_label, known)
            if names is not None:
                mapping = _named(table, mapping, names, read_as.encoding)
            made = convert(table, mapping, for_evaluation=for_evaluation)
            show_columns(made)
    except ValueError as error:
        n_left = len(table.refused)
        left_out = (
            [f"{n_left:,} rows cannot be read. {table.refused[0].sentence}"] if n_left else []
        )
        notes = [note for note in table.notes if note not in str(error)]
        message = " ".join((str(error), *notes, *left_out))
        raise click.UsageError(printable(message)) from error
    return FileRows(made, read_as)


class FileRows:
    """The rows of a file, and where those are written that are left out; a file without is a mistake."""

    def __init__(self, made: Converted, read_as: FileReading) -> None:
        self.made, self._read_as = made, read_as
        read_as.keep(made.table.columns, made.refused)
        if not made.n_rows:
            raise click.UsageError("No row can be used; nothing was stored.")

    def leave_out_relabelled(self, client: Client, dataset: Dataset) -> None:
        """Leave out, and show, rows whose context has another label, or side, in the dataset."""
        from steelyard.client.tables import with_truths_of

        before = self.made
        self.made = with_truths_of(before, client, dataset)
        refused = self.made.refused[len(before.refused) :]
        for note in self.made.table.notes[len(before.table.notes) :]:
            click.echo(printable(note), err=True)
        show_refused(", for what the dataset has", refused)
        self._read_as.keep(self.made.table.columns, refused)
        if not self.made.n_rows:
            raise click.UsageError("No row can be used; nothing was stored.")

    def put_license(self, text: str | None) -> None:
        """Put a licence into the metadata of each row that names none."""
        if text is not None:
            self.made = self.made.under_license(text)

    def is_much_left_out(self) -> bool:
        """Return, and say, whether over a tenth of the rows is left out and no file is named for them."""
        n_left = sum(not row.by_program for row in self._read_as.left_out)
        n_rows = self.made.n_rows - len(self.made.refused_by_server) + n_left
        is_much = self._read_as.bad_rows is None and n_left > _MOST_LEFT_OUT * n_rows
        if is_much:
            click.echo(
                f"{n_left:,} of {n_rows:,} rows are left out, more than a tenth, so the exit status is 1; "
                "with --bad-rows FILE it is 0.",
                err=True,
            )
        return is_much

    def show_checked(self) -> None:
        """Print which rows a server would refuse; it is a mistake when it would refuse all."""
        from steelyard.datasets.ingest import RowReader
        from steelyard.settings import read_settings

        parts = self.made.parts
        by_side = parts if isinstance(parts, dict) else {"examples": parts}
        good = set[int]()
        for part, lines in by_side.items():
            reader = RowReader()
            for number, line in enumerate(lines):
                n_rows = reader.n_rows
                for _ in reader.read_ndjson([line], part):
                    pass
                if line.strip() and reader.n_rows == n_rows:
                    error = reader.error()
                    for detail in (error.details if error is not None else None) or ():
                        self.made(part, number, detail)
                    reader = RowReader()
                else:
                    good |= {hash(line)} if line.strip() else set()
        self._show_refused()
        if len(good) < (least := read_settings({}).dataset_min_rows):
            raise click.UsageError(
                f"The dataset would have {len(good)} rows; give at least {least}."
                if good
                else "No row can be used."
            )

    def _show_refused(self) -> None:
        refused = self.made.refused_by_server
        show_refused(", which the server refuses", refused)
        self._read_as.keep(self.made.table.columns, refused)

    def show_sent(self, client: Client, stored: Dataset | None) -> None:
        """Print the rows that the server refused, and record a dataset's annotators and their answers."""
        from steelyard.client.tables import record_answers

        self._show_refused()
        if stored is not None and (recorded := record_answers(client, stored, self.made)):
            click.echo(recorded.summary, err=True)


def _named(table: Table, mapping: Mapping, names: Path, encoding: str | None) -> Mapping:
    """Return a mapping whose labels have the names of their numbers."""
    from steelyard.client.tables import name_values, read_names

    known = read_names(names, encoding)
    labels = tuple(name_values(table, label, known) for label in mapping.labels)
    if labels == mapping.labels:
        raise ValueError(f"No label has numbers for {names.name}; leave --names out.")
    return replace(mapping, labels=labels)


def _roles(table: Table, roles: dict[str, Sequence[str]]) -> dict[str, str]:
    """Return the role of each column that an option names; refuse two for one, and unknown columns."""
    from steelyard.client.tables.columns import listed

    named: dict[str, str] = {}
    for role, columns in roles.items():
        for column in columns:
            if column not in table.columns:
                raise ValueError(
                    f"There is no column {column!r}; the file has {listed(table.columns)}."
                )
            if columns.count(column) > 1:
                raise ValueError(f"{column!r} is named with --{role} twice; name it once.")
            # Any column may be kept beside the rows.
            if named.setdefault(column, role) != role and role != "metadata":
                raise ValueError(
                    f"{column!r} is named with --{named[column]} and with --{role}; name it once."
                )
    return named


def _without_label(table: Table, used: set[str]) -> str:
    if table.hints is not None and not table.hints.labels:
        return (
            "The export has no answers; answer its rows there, or ask other models to label them with "
            "steelyard labeling."
        )
    if len(table.columns) == 1:
        return (
            f"The file has one column, {table.columns[0]}; add one with the right outcomes, or ask "
            "other models to label its rows with steelyard labeling."
        )
    from steelyard.client.tables import label_of
    from steelyard.client.tables.columns import is_label_name, listed

    others = [name for name in table.columns if name not in used]
    if not others:
        return "No column is left for a label: options name each as something else. Name one with --label."
    sentence = f"No column looks like a label; name one of {listed(others)} with --label."
    likely = list(filter(is_label_name, others)) or others
    if len(likely) == 1:
        try:
            label_of(table, likely[0])
        except ValueError as error:
            sentence = f"No column looks like a label. {error}"
    return " ".join((sentence, *table.notes))


def _alike(labels: Sequence[Label]) -> list[str]:
    """Return the columns of the first labels that have the same outcomes, three names or more."""
    by_outcomes: dict[frozenset[str], list[str]] = {}
    for label in labels:
        if label.kind == "single" and len(label.outcomes) > 2:
            by_outcomes.setdefault(frozenset(label.outcomes), []).append(label.column)
    return next((columns for columns in by_outcomes.values() if len(columns) > 1), [])


def choose_columns(
    table: Table,
    context: Sequence[str],
    labels: Sequence[str] | None,
    metadata: Sequence[str],
    split: str | None = None,
    no_label: Sequence[str] = (),
    known: Sequence[dict[str, Any]] = (),
) -> Mapping:
    """Return the meaning of the columns: as given by options, else as guessed.

    ``labels`` is ``None`` where rows have none; ``known`` are the decisions that alone may be.

    Raise ``ValueError`` when a column is not there, or there is no label.
    """
    label_questions = [column.partition("=")[::2] for column in labels or ()]
    named = _roles(
        table,
        {
            "context": context,
            "label": [name for name, _ in label_questions],
            "split": [split] if split else [],
            "metadata": metadata,
        },
    )
    from steelyard.client.tables import Mapping, guess_mapping, guess_split, label_of

    guessed = None
    if not context or (labels is not None and (not label_questions or table.hints is not None)):
        guessed = guess_mapping(table, known, context=context, named=named)
    chosen = tuple(context) or (guessed.context if guessed else ())
    if labels is None:
        return Mapping(chosen, (), tuple(metadata))
    if known and guessed and all(label.definition is None for label in guessed.labels):
        ids = ", ".join(str(decision["id"]) for decision in known)
        raise ValueError(f"No column is a decision of the dataset; name one by its id: {ids}.")
    missing = no_label or None
    chosen_labels = tuple(
        label_of(table, name, question or None, missing) for name, question in label_questions
    )
    if not chosen_labels and guessed is not None:
        chosen_labels = tuple(
            label if missing is None else label_of(table, label.column, None, missing)
            for label in guessed.labels
        )
        if len(alike := _alike(chosen_labels)) > 1:
            table.notes.append(
                f"{', '.join(alike)} have the same outcomes, and are a decision each; where they are answers of "
                "several people or models to one question, name the right one with --label."
            )
    if not chosen_labels:
        raise ValueError(_without_label(table, {*chosen, *named}))
    known_values = {"", *(value for label in chosen_labels for value in label.no_label)}
    table.notes.extend(
        f"No label has the value {value!r}, which --no-label names."
        for value in no_label
        if value not in known_values
    )
    chosen_metadata = tuple(metadata) or (guessed.metadata if guessed else ())
    return Mapping(chosen, chosen_labels, chosen_metadata, split or guess_split(table, named))


def show_columns(made: Converted) -> None:
    """Write to the error stream how a file was read, and its skipped rows."""
    table, mapping = made.table, made.mapping
    lines = [f"  context  {', '.join(mapping.context)}"]
    for label in mapping.labels:
        outcomes = ", ".join(label.outcomes[:6]) + (" …" if len(label.outcomes) > 6 else "")
        kind = "a yes or no decision each" if label.kind == "several" else label.kind
        lines.append(
            f"  label    {label.column}: {label.question} ({kind}; "
            f"{len(label.outcomes)} outcomes: {outcomes})"
        )
        lines += [f"  note     {note}" for note in (label.case_note, label.note) if note]
    if mapping.split is not None:
        lines.append(f"  split    {mapping.split}")
    lines += [f"  {'sides' if ' side' in note else 'note':<9}{note}" for note in made.notes]
    rest = sorted(
        set(table.columns)
        - {*mapping.context, *mapping.metadata, mapping.split}
        - {label.column for label in mapping.labels}
    )
    if rest:
        lines.append(f"  left out {', '.join(rest)}")
    lines.append(f"{made.n_rows:,} rows can be used.")
    if made.n_duplicates:
        lines.append(f"{made.n_duplicates:,} of them are repeated, and kept once.")
    show_read(table, lines, made.refused)


def show_exported(made: Converted) -> None:
    """Write to the error stream that a file is an export, and its skipped records."""
    counts = ", ".join(f"{n:,} of {side}" for side, n in Counter(made.sides).items())
    lines = [f"  An exported dataset: rows, as they were: {counts}."]
    show_read(made.table, [*lines, *(f"  sides    {note}" for note in made.notes)], made.refused)
