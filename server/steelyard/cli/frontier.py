"""``steelyard frontier``: a dataset's models by quality, price and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_rows
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import read_json

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.evaluations.frontier_wire import Frontier

_EPILOG = """\b
Examples:
  steelyard frontier ds_01k…
  steelyard frontier ds_01k… --measure log_loss --json
  steelyard frontier ds_01k… --measure expected_cost --decision refund \\
      --false-positive 20 --false-negative 3
"""


@asking("frontier", "dataset", epilog=_EPILOG)
@click.option(
    "--measure",
    type=click.Choice(("accuracy", "log_loss", "expected_cost")),
    default="accuracy",
    help="What the models achieve.",
)
@click.option(
    "--version", type=int, help="A version of it. [default: the newest that was evaluated]"
)
@click.option("--decision", help="With expected_cost: the decision that the costs are for.")
@click.option("--false-positive", type=float, help="Of a binary decision: a wrong yes costs this.")
@click.option("--false-negative", type=float, help="Of a binary decision: a wrong no costs this.")
@click.option("--action-costs", help="Instead of those two: JSON of action to outcome to cost.")
def command(client: Client, dataset: str, *, action_costs: str | None, **given: Any) -> Shown:
    """Show the models of DATASET, and which of them no other model beats.

    Each model stands by its newest evaluation. Asks the server of the setting url, with the key of
    the variable STEELYARD_API_KEY.
    """
    costs = None if action_costs is None else _read_costs(action_costs)
    return client.evaluations.frontier(dataset, action_costs=costs, **given), _show


def _read_costs(text: str) -> Any:
    costs = read_json(text, "--action-costs")
    if not isinstance(costs, dict):
        raise click.BadParameter(
            'is not a JSON object; write {"act": {"yes": 0, "no": 2}}.', param_hint="--action-costs"
        )
    return costs


def _show(frontier: Frontier) -> None:
    from steelyard.client.display_evaluations import show_measure

    if not frontier.data:
        click.echo("No model was evaluated yet; start with steelyard evaluate.")
        return
    measure = frontier.measure.upper().replace("_", " ")
    show_rows(
        frontier,
        f"MODEL:model, {measure}:estimate, USD PER 1,000:price_usd_per_1000, MS:latency_ms, "
        ":dominated, EVALUATION:evaluation",
        estimate=lambda each: show_measure(each.estimate),
        latency_ms=lambda each: each.latency_ms and f"{each.latency_ms:.1f}",
        dominated=lambda each: "" if each.dominated else "*",
    )
    click.echo("* no other model is nowhere worse and somewhere better")
