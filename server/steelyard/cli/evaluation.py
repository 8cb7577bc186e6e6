"""``steelyard evaluation``: export an evaluation's records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli import evaluation_threshold
from steelyard.cli.exporting import ExportAs, export_options
from steelyard.cli.nouns import Noun, Shown

if TYPE_CHECKING:
    from steelyard.client import Client

_EPILOG = """\b
Examples:
  steelyard evaluation export eval_01k… --format csv --output scored.csv
  steelyard evaluation export eval_01k… --wrong --output wrong.parquet
  steelyard evaluation threshold eval_01k… fraud --precision 0.95
"""


@click.group("evaluation", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Export an evaluation's records, and find thresholds; `steelyard evaluate` makes and shows them."""


command.add_command(evaluation_threshold.command)


@command.asks("export", "evaluation")
@click.option("--decision", help="Only the decision of this id.")
@click.option("--wrong", is_flag=True, help="Only those answered wrong.")
@click.option(
    "--order",
    type=click.Choice(["row", "loss", "surest", "least_sure"]),
    default="row",
    help="As the dataset has them, the worst first, or by the top probability.",
)
@export_options
def export(client: Client, evaluation: str, *, export_as: ExportAs, **which: Any) -> Shown:
    """Write the scored decisions of EVALUATION, with their contexts, a row each."""
    return export_as.save(evaluation, client.evaluations.export_to, evaluation, **which)
