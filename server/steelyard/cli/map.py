"""``steelyard map``: the rows of datasets laid out as points, followed, stopped and exported."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.exporting import ExportAs, export_options
from steelyard.cli.job_commands import JobCommands
from steelyard.cli.local_state import table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.client import Client
    from steelyard.maps.wire import DatasetMap

_EPILOG = """\b
Examples:
  steelyard map start ds_01k… --follow
  steelyard map list --dataset ds_01k…
  steelyard map export map_01k… --decision team --output points.csv
"""


@click.group("map", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Lay out the rows of datasets as points: rows whose contexts are alike lie near each other.

    Exit status: 1 when a map that is followed has no points; 3 when it has not ended in time.
    """


@command.asks("start", "dataset")
@click.option("--version", type=click.IntRange(min=1), help="A version. [default: the latest]")
@click.option("--model", help="Whose vectors are compared. [default: the default base model]")
@click.option("--follow", is_flag=True, help="Wait until it has its points.")
def start(client: Client, dataset: str, *, follow: bool, **given: Any) -> Shown:
    """Lay out the rows of DATASET, or show the map that is there.

    A cancelled map continues where it stopped; a failed one begins anew.
    """
    return _COMMANDS.begun(client, client.maps.create(dataset, **given), follow=follow)


@command.asks("list")
@click.option("--dataset", "dataset_id", help="Only those of this dataset.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, help="Maps at most.")
def list_maps(client: Client, *, dataset_id: str | None, limit: int) -> Shown:
    """List maps, the newest first."""
    return list(islice(client.maps.list(dataset_id=dataset_id), limit)), _show_maps


@command.asks("export")
@click.argument("map_", metavar="MAP")
@click.option("--decision", help="Write the labels of this decision too.")
@click.option(
    "--evaluation", help="Write what this evaluation's model answered to the decision too."
)
@export_options
def export(client: Client, *, map_: str, export_as: ExportAs, **which: Any) -> Shown:
    """Write the points of MAP, a row each: its place in the dataset, side, x, y and text."""
    if which["evaluation"] is not None and which["decision"] is None:
        raise click.UsageError("--evaluation needs --decision: name the decision that it answered.")

    def export_to(map_id: str, *, progress: object, **how: Any) -> Path:  # noqa: ARG001
        return client.maps.export_to(map_id, **how)

    return export_as.save(map_, export_to, map_, **which)


def _show(dataset_map: DatasetMap) -> None:
    _show_maps(dataset_map)
    if dataset_map.error is not None:
        click.echo(printable(f"{dataset_map.error} ({dataset_map.error_code})"))


def _done(dataset_map: DatasetMap) -> str:
    now = dataset_map.progress
    return "" if now is None else f"{now.phase.replace('_', ' ')}: {now.step} of {now.steps}"


_show_maps = table_of(
    "ID:id, DATASET:dataset_id, VERSION:dataset_version, MODEL:model, STATUS:status, "
    "POINTS:points, DONE:progress, ASKED FOR:created_at",
    progress=_done,
)
_COMMANDS: JobCommands[DatasetMap] = JobCommands(
    of=lambda client: client.maps,
    metavar="MAP",
    show=_show,
    is_done=lambda job: job.status == "succeeded",
)
_COMMANDS.add_to(
    command,
    show="Show MAP: how far it is.",
    follow="Wait until MAP has its points, with a live bar.",
    cancel="Stop MAP; what it has is kept for a day, and it goes on when it is started again.",
)
