"""``steelyard map``: the rows of datasets laid out as points, followed, stopped and exported."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.exporting import ExportAs, export_options
from steelyard.cli.job_commands import JobCommands
from steelyard.cli.local_state import show_table, show_time
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.maps.wire import DatasetMap

_EPILOG = """\b
Examples:
  steelyard map start ds_01k… --follow
  steelyard map list --dataset ds_01k…
  steelyard map export map_01k… --decision team --output points.csv
"""


@click.group("map", epilog=_EPILOG)
def command() -> None:
    """Lay out the rows of datasets as points: rows whose contexts are alike lie near each other.

    Exit status: 1 when a map that is followed has no points; 3 when it has not ended in time.
    """


@command.command("start", epilog=_EPILOG)
@click.argument("dataset")
@click.option("--version", type=click.IntRange(min=1), help="A version. [default: the latest]")
@click.option("--model", help="Whose vectors are compared. [default: the default base model]")
@click.option("--follow", is_flag=True, help="Wait until it has its points.")
@server_options
def start(
    *, dataset: str, version: int | None, model: str | None, follow: bool, server: Server
) -> None:
    """Lay out the rows of DATASET, or show the map that is there.

    One that was cancelled goes on from what it has, and one that failed begins anew.
    """
    with server.connected() as client:
        answer = client.maps.create(dataset, version=version, model=model)
        if follow:
            _COMMANDS.follow(client, answer, server)
        else:
            server.show(answer, _show)


@command.command("list", epilog=_EPILOG)
@click.option("--dataset", "dataset_id", help="Only those of this dataset.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Maps at most."
)
@server_options
def list_maps(*, dataset_id: str | None, limit: int, server: Server) -> None:
    """List maps, the newest first."""
    with server.connected() as client:
        maps = list(islice(client.maps.list(dataset_id=dataset_id), limit))
    server.show(maps, _show_maps)


@command.command("export", epilog=_EPILOG)
@click.argument("map_", metavar="MAP")
@click.option("--decision", help="Write the labels of this decision too.")
@click.option(
    "--evaluation", help="Write what this evaluation's model answered to the decision too."
)
@export_options
@server_options
def export(
    *,
    map_: str,
    decision: str | None,
    evaluation: str | None,
    export_as: ExportAs,
    server: Server,
) -> None:
    """Write the points of MAP, a row each: its place in the dataset, side, x, y and text."""
    if evaluation is not None and decision is None:
        raise click.UsageError("--evaluation needs --decision: name the decision that it answered.")
    with server.connected() as client:
        export_as.save(
            server,
            map_,
            lambda *, progress, **given: client.maps.export_to(  # noqa: ARG005
                map_, decision=decision, evaluation=evaluation, **given
            ),
        )


def _show(dataset_map: DatasetMap) -> None:
    _show_maps([dataset_map])
    if dataset_map.error is not None:
        click.echo(printable(f"{dataset_map.error} ({dataset_map.error_code})"))


def _show_maps(dataset_maps: Sequence[DatasetMap]) -> None:
    show_table(
        ("ID", "DATASET", "VERSION", "MODEL", "STATUS", "POINTS", "DONE", "ASKED FOR"),
        [
            (
                dataset_map.id,
                dataset_map.dataset_id,
                dataset_map.dataset_version,
                dataset_map.model,
                dataset_map.status,
                dataset_map.points,
                _done(dataset_map),
                show_time(dataset_map.created_at),
            )
            for dataset_map in dataset_maps
        ],
    )


def _done(dataset_map: DatasetMap) -> str:
    now = dataset_map.progress
    return "" if now is None else f"{now.phase.replace('_', ' ')}: {now.step} of {now.steps}"


_COMMANDS: JobCommands[DatasetMap] = JobCommands(
    of=lambda client: client.maps,
    metavar="MAP",
    epilog=_EPILOG,
    show=_show,
    is_done=lambda job: job.status == "succeeded",
)
_COMMANDS.add_to(
    command,
    show="Show MAP: how far it is.",
    follow="Wait until MAP has its points, with a live bar.",
    cancel="Stop MAP; what it has is kept for a day, and it goes on when it is started again.",
)
