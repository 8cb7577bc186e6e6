"""``steelyard family bound`` and ``novelty``: abstain on answers not certified, and on unlike texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import PROBABILITY

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.families.wire import Family

_BOUND_EPILOG = """\b
Examples:
  steelyard family bound router --error 0.02
  steelyard family bound router --error 0.05 --confidence 0.99 --json
  steelyard family bound router --remove
"""
_NOVELTY_EPILOG = """\b
Examples:
  steelyard family novelty router
  steelyard family novelty router --false-alarms 0.01 --json
  steelyard family novelty router --remove
"""


@asking("bound", "name", epilog=_BOUND_EPILOG)
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
def bound(
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


@asking("novelty", "name", epilog=_NOVELTY_EPILOG)
@click.option(
    "--false-alarms",
    type=PROBABILITY,
    default=0.05,
    help="How often it may abstain on texts like the held-out ones.",
)
@click.option("--remove", is_flag=True, help="Let NAME answer such texts as any other.")
def novelty(client: Client, name: str, *, false_alarms: float, remove: bool) -> Shown:
    """Make NAME abstain on texts unlike its training rows, however sure it is.

    Every answer then has its novelty: the share of training rows that lie further out. Exit status:
    1 when the model that NAME serves cannot tell; nothing is kept.
    """
    from steelyard.errors import NoveltyUnknownError

    if remove:
        return client.families.answer_novel(name), show_novelty
    try:
        return client.families.abstain_on_novel(name, false_alarms), show_novelty
    except NoveltyUnknownError as refusal:
        raise click.ClickException(f"{refusal.message} Nothing is kept.") from None


def show_novelty(family: Family) -> None:
    """Print how a family treats texts unlike its training rows."""
    if family.novelty is UNSET:
        click.echo(f"{family.id} answers texts unlike its training rows as any other.")
        return
    click.echo(
        f"{family.id} abstains on texts unlike its training rows; of texts like the held-out ones "
        f"{family.novelty.false_alarms:.1%} may be taken for such."
    )
