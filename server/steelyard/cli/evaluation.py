"""``steelyard evaluation``: export an evaluation's records."""

from __future__ import annotations

from typing import Any

import click

from steelyard.cli import evaluation_threshold
from steelyard.cli.connecting import Server, server_options
from steelyard.cli.exporting import ExportAs, export_options

_EPILOG = """\b
Examples:
  steelyard evaluation export eval_01k… --format csv --output scored.csv
  steelyard evaluation export eval_01k… --wrong --output wrong.parquet
  steelyard evaluation threshold eval_01k… fraud --precision 0.95
"""


@click.group("evaluation", epilog=_EPILOG)
def command() -> None:
    """Export an evaluation's records, and find thresholds; `steelyard evaluate` makes and shows them."""


command.add_command(evaluation_threshold.command)


@command.command("export", epilog=_EPILOG)
@click.argument("evaluation")
@click.option("--decision", help="Only the decision of this id.")
@click.option("--wrong", is_flag=True, help="Only those answered wrong.")
@click.option(
    "--order",
    type=click.Choice(["row", "loss", "surest", "least_sure"]),
    default="row",
    show_default=True,
    help="As the dataset has them, the worst first, or by the top probability.",
)
@export_options
@server_options
def export(*, evaluation: str, export_as: ExportAs, server: Server, **which: Any) -> None:
    """Write the scored decisions of EVALUATION, with their contexts, a row each."""
    with server.connected() as client:
        export_as.save(server, evaluation, client.evaluations.export_to, evaluation, **which)
