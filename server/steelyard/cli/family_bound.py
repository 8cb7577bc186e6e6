"""``steelyard family bound``: answers of a family that are certified, the rest abstaining."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from steelyard.cli.connecting import Server, server_options

if TYPE_CHECKING:
    from steelyard.families.wire import Family

_EPILOG = """\b
Examples:
  steelyard family bound router --error 0.02
  steelyard family bound router --error 0.05 --confidence 0.99 --json
  steelyard family bound router --remove
"""


@click.command("bound", epilog=_EPILOG)
@click.argument("name")
@click.option(
    "--error",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Share of certified answers that may be wrong, such as 0.02.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, max_open=True),
    default=0.95,
    show_default=True,
    help="How often a bound found on such rows holds.",
)
@click.option("--remove", is_flag=True, help="Remove the bound of NAME.")
@server_options
def command(
    *, name: str, error: float | None, confidence: float, remove: bool, server: Server
) -> None:
    """Certify that answers of NAME are wrong at most so often; those that are not abstain.

    The held-out answers of the model that NAME serves give the threshold. Exit status: 1 when they
    certify none; the message says how many more rows would, and nothing is kept.
    """
    from steelyard.errors import BoundNotCertifiedError

    if (error is None) != remove:
        raise click.UsageError("Give --error, or --remove.")
    with server.connected() as client:
        try:
            bound = (
                client.families.remove_bound(name)
                if error is None
                else client.families.bound(name, error, confidence=confidence)
            )
        except BoundNotCertifiedError as refusal:
            raise click.ClickException(f"{refusal.message} Nothing is kept.") from None
    server.show(bound, show_bound)


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
