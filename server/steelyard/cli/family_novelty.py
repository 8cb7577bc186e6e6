"""``steelyard family novelty``: texts unlike any that a family was trained on, which abstain."""

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
  steelyard family novelty router
  steelyard family novelty router --false-alarms 0.01 --json
  steelyard family novelty router --remove
"""


@asking("novelty", "name", epilog=_EPILOG)
@click.option(
    "--false-alarms",
    type=PROBABILITY,
    default=0.05,
    help="How often it may abstain on texts like the held-out ones.",
)
@click.option("--remove", is_flag=True, help="Let NAME answer such texts as any other.")
def command(client: Client, name: str, *, false_alarms: float, remove: bool) -> Shown:
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
