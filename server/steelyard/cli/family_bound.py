"""``steelyard family bound``: answers of a family that are certified, the rest abstaining."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import PROBABILITY

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.families.wire import Family

_EPILOG = """\b
Examples:
  steelyard family bound router --error 0.02
  steelyard family bound router --error 0.05 --confidence 0.99 --json
  steelyard family bound router --remove
"""


@asking("bound", "name", epilog=_EPILOG)
@click.option(
    "--error", type=PROBABILITY, help="Share of certified answers that may be wrong, such as 0.02."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.95,
    help="How often a bound found on such rows holds.",
)
@click.option("--remove", is_flag=True, help="Remove the bound of NAME.")
def command(
    client: Client, name: str, *, error: float | None, confidence: float, remove: bool
) -> Shown:
    """Certify that answers of NAME are wrong at most so often; those that are not abstain.

    The held-out answers of the model that NAME serves give the threshold. Exit status: 1 when they
    certify none; the message says how many more rows would, and nothing is kept.
    """
    from steelyard.errors import BoundNotCertifiedError

    if (error is None) != remove:
        raise click.UsageError("Give --error, or --remove.")
    if error is None:
        return client.families.remove_bound(name), show_bound
    try:
        return client.families.bound(name, error, confidence=confidence), show_bound
    except BoundNotCertifiedError as refusal:
        raise click.ClickException(f"{refusal.message} Nothing is kept.") from None


def show_bound(family: Family) -> None:
    """Print the certificate of a family's answers."""
    bound = family.bound
    if bound is UNSET:
        click.echo(f"{family.id} has no bound; its answers are not certified.")
        return
    click.echo(
        f"{bound.model}: from a top probability of {bound.threshold:.4f} on, answers are certified to "
        f"be wrong in at most {bound.error:g}, with a confidence of {bound.confidence:g}; all others "
        "abstain."
    )
    click.echo(
        f"Held out, {bound.answered:.1%} of {bound.decisions:,} decisions are answered so, and "
        f"{bound.measured_error:.2%} of those are wrong ({bound.contexts:,} contexts; "
        f"{bound.dataset_id}, version {bound.dataset_version})."
    )
