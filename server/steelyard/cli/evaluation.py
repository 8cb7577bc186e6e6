"""``steelyard evaluation``: export an evaluation's records, and find thresholds of its outcomes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from steelyard.cli.exporting import ExportAs, export_options
from steelyard.cli.local_state import show_table
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import PROBABILITY

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.evaluations.thresholds_wire import OutcomePoint, OutcomeThreshold
    from steelyard.named.wire import NamedVersion

_EPILOG = """\b
Examples:
  steelyard evaluation export eval_01k… --format csv --output scored.csv
  steelyard evaluation export eval_01k… --wrong --output wrong.parquet
  steelyard evaluation threshold eval_01k… fraud --precision 0.95
"""
_THRESHOLD_EPILOG = """\b
Examples:
  steelyard evaluation threshold eval_01k… fraud --precision 0.95
  steelyard evaluation threshold eval_01k… fraud --precision 0.95 --keep support_triage
  steelyard evaluation threshold eval_01k… fraud --wrong-cost 20 --abstain-cost 1 --curve
"""


@click.group("evaluation", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Export an evaluation's records, and find thresholds; `steelyard evaluate` makes and shows them."""


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


@command.asks("threshold", "evaluation", "outcome", epilog=_THRESHOLD_EPILOG)
@click.option("--decision", help="Its id. [default: the only one that was scored]")
@click.option(
    "--precision", type=PROBABILITY, help="Share of what is sent to OUTCOME that must be right."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.95,
    help="Of what --precision certifies.",
)
@click.option("--wrong-cost", type=click.FloatRange(0), help="Cost of sending a wrong one there.")
@click.option("--abstain-cost", type=click.FloatRange(0), help="Cost of abstaining instead.")
@click.option("--curve", is_flag=True, help="Print each threshold that sends fewer than the last.")
@click.option(
    "--keep", metavar="NAME", help="Add a version with this threshold to the named decision NAME."
)
@click.option("--anyway", is_flag=True, help="Keep it where the rows cannot certify the precision.")
def threshold(
    client: Client,
    evaluation: str,
    outcome: str,
    *,
    decision: str | None,
    curve: bool,
    keep: str | None,
    anyway: bool,
    **goal: float | None,
) -> Shown:
    """Find from which probability on to act on OUTCOME, by the answers of EVALUATION.

    Below it a decision whose likeliest outcome that is abstains. A precision is certified: of the
    decisions sent to OUTCOME so many are right, with the confidence. With costs it is the cheapest
    threshold on these rows. Exit status: 1 where the rows certify none; nothing is kept then, unless
    --anyway.
    """
    has_costs = goal["wrong_cost"] is not None and goal["abstain_cost"] is not None
    if (goal["precision"] is not None) == has_costs:
        raise click.UsageError("Give --precision, or --wrong-cost and --abstain-cost.")
    decision = decision or _only_decision(client, evaluation)
    result = client.evaluations.outcome_threshold(evaluation, decision, outcome, **goal)
    uncertified = _uncertified(result, goal["precision"], goal["confidence"])
    version = None
    if keep is not None and (uncertified is None or anyway):
        version = _keep(client, keep, evaluation, result)
    if uncertified is not None and anyway:
        click.echo(f"Not certified: {uncertified}", err=True)

    def show(answer: OutcomeThreshold) -> None:
        _show(answer, has_curve=curve)
        if version is not None:
            name, number = version.name, version.version
            click.echo(f"Kept in {name}@{number}. Next: steelyard decision compare {name} {number}")

    if uncertified is None or anyway:
        return result, show
    return result, show, f"{uncertified} Nothing is kept."


def _only_decision(client: Client, evaluation: str) -> str:
    names = [each.decision_id for each in client.evaluations.detail(evaluation).decisions]
    if len(names) > 1:
        raise click.UsageError(f"Say which decision with --decision: {', '.join(names)}.")
    return names[0]


def _uncertified(
    result: OutcomeThreshold, precision: float | None, confidence: float | None
) -> str | None:
    """Return why a precision is not certified; ``None`` where it is, or none is asked for."""
    if precision is None or result.certified is not None:
        return None
    more = (
        f"Answered alike, {result.missing_rows:,} more evaluation rows would certify it."
        if result.missing_rows is not None
        else "While that is so, no number of rows would; require less, or train a better model."
    )
    return (
        f"{result.contexts:,} evaluation rows cannot certify that {precision:g} of what is sent to "
        f"{result.outcome} is right, with a confidence of {confidence:g}. {more}"
    )


def _keep(client: Client, name: str, evaluation: str, result: OutcomeThreshold) -> NamedVersion:
    """Add a version whose policy has the threshold to a named decision."""
    from steelyard.client.thresholds import keep_threshold

    if result.threshold is None:
        raise click.ClickException(f"No threshold of {result.outcome} does that; nothing is kept.")
    try:
        return keep_threshold(
            client,
            name,
            result.decision_id,
            result.outcome,
            result.threshold,
            evaluation_id=evaluation,
            certified=result.certified,
        )
    except ValueError as error:
        raise click.ClickException(f"{error} Nothing is kept.") from None


def _show(result: OutcomeThreshold, *, has_curve: bool) -> None:
    point = result.at_threshold
    if point is None:
        click.echo(f"No threshold sends decisions to {result.outcome} that are right so often.")
    else:
        click.echo(
            f"From a probability of {point.threshold:.4f} on, {point.sent:,} of {result.n:,} decisions "
            f"are sent to {result.outcome}."
        )
        for name, text in zip(("Precision", "Recall", "Cost"), _figures(point), strict=True):
            if text:
                click.echo(f"{name:9} {text}")
    if result.certified is not None:
        click.echo(
            f"Certified: {result.certified.precision:g} of what is sent there is right, with a "
            f"confidence of {result.certified.confidence:g}."
        )
    if has_curve:
        show_table(
            ("FROM", "SENT", "PRECISION", "RECALL", "COST"),
            [
                (f"{point.threshold:.2f}", point.sent, *_figures(point))
                for before, point in pairwise(result.points)
                if point.sent != before.sent
            ],
        )


def _figures(point: OutcomePoint) -> tuple[str, str, str | None]:
    from steelyard.client.display_evaluations import show_measure

    cost = None if point.cost is UNSET else show_measure(point.cost)
    return show_measure(point.precision), show_measure(point.recall), cost
