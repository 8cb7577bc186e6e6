"""``steelyard evaluation``: what an evaluation scored, to take along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.exporting import ExportAs, export_options

if TYPE_CHECKING:
    from steelyard.evaluations.queries_wire import RecordOrder

_EPILOG = """\b
Examples:
  steelyard evaluation export eval_01k… --format csv --output scored.csv
  steelyard evaluation export eval_01k… --wrong --output wrong.parquet
"""


@click.group("evaluation", epilog=_EPILOG)
def command() -> None:
    """Export what an evaluation scored; `steelyard evaluate` makes and shows evaluations."""


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
def export(
    *,
    evaluation: str,
    decision: str | None,
    wrong: bool,
    order: RecordOrder,
    export_as: ExportAs,
    server: Server,
) -> None:
    """Write the scored decisions of EVALUATION, with their contexts, a row each."""
    with server.connected() as client:
        export_as.save(
            server,
            evaluation,
            lambda **given: client.evaluations.export_to(
                evaluation, decision=decision, wrong=wrong, order=order, **given
            ),
        )
