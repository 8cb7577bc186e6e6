"""Output that commands on datasets share: refused rows, and a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from steelyard.cli.connecting import Server
from steelyard.cli.failures import REFUSED
from steelyard.cli.local_state import show_fields, show_table
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.datasets.from_feedback_wire import DatasetFromFeedback
    from steelyard.datasets.wire import Dataset
    from steelyard.errors import SteelyardError

fraction_option = click.option(
    "--evaluation-fraction",
    type=float,
    help="Share of the new contexts put aside for evaluation, 0.1 to 1. [default: 0.2]",
)


@contextmanager
def connected(server: Server) -> Iterator[Client]:
    """Yield a client; rows that cannot be used are listed line by line."""
    from steelyard.errors import SteelyardError

    with server.connected() as client:
        try:
            yield client
        except SteelyardError as error:
            if not error.details:
                raise
            _show_problems(error)
            raise SystemExit(REFUSED) from None


def _show_problems(error: SteelyardError) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    click.echo(f"Error ({error.code}): {printable(error.message)}", err=True)
    for note in getattr(error, "__notes__", ()):
        click.echo(printable(note), err=True)
    table = Table(box=None, show_edge=False, pad_edge=False)
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("field", overflow="fold")
    table.add_column("problem", overflow="fold", ratio=1)
    for detail in error.details or ():
        line, field = _place_of(detail.get("path", ()))
        message = str(detail.get("message", "")).removeprefix(f"Line {line}: ")
        table.add_row(line, Text(printable(field)), Text(printable(message)))
    Console(stderr=True, highlight=False, markup=False).print(table)


def _place_of(path: list[str | int]) -> tuple[str, str]:
    """Return the line of a problem, where it has one, and its field."""
    from steelyard.cli.failures import path_text

    if len(path) > 2 and isinstance(path[2], int):
        field = path_text(path[3:]) if len(path) > 3 else "row"
        return str(path[2] + 1), field
    return "", path_text(path)


def show_dataset(dataset: Dataset) -> None:
    """Write a dataset as a table of its fields."""
    show_fields(
        dataset,
        "id, name, version, rows, contexts, training:split.training, evaluation:split.evaluation, "
        "duplicates removed:duplicates_removed, method, sha256",
    )
    for warning in dataset.warnings or ():
        click.echo(f"\n{printable(warning.message)}")


def show_from_feedback(made: DatasetFromFeedback) -> None:
    """Show the dataset, and how many stored decisions became rows."""
    import msgspec

    show_dataset(made)
    click.echo()
    counts = msgspec.structs.asdict(made.feedback)
    rows = [(name.replace("_", " "), count) for name, count in counts.items()]
    show_table(("STORED DECISIONS", "N"), rows)
