"""``steelyard decision grow``: the leave that a named decision has to grow, and how far it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_table, show_time
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.growth.wire import Growth

_EPILOG = """\b
Examples:
  steelyard decision grow support_triage
  steelyard decision grow support_triage --policy move --margin 0.01 --max-price-usd 2
  steelyard decision grow support_triage --judge-rows 0.95
  steelyard decision grow support_triage --stop
"""
#: Stages that end by themselves, and seconds between two looks at them.
_UNDER_WAY, _LOOK_S = ("training", "comparing"), 2.0


@asking("grow", "name", epilog=_EPILOG)
@click.option(
    "--policy",
    type=click.Choice(("rows", "propose", "move")),
    help="Only gather rows; also train and propose what passes; or move production to it. "
    "[default: propose]",
)
@click.option("--family", help="The family of its rows. [default: NAME, with hyphens]")
@click.option(
    "--at-least",
    type=click.IntRange(1),
    help="New rows without which nothing is trained. [default: 100]",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 0.2),
    help="How much less often than the model before it may be right. [default: 0.02]",
)
@click.option(
    "--shadow",
    type=click.IntRange(0, 10_000),
    help="Answers that the family gives along before it is compared. [default: 100]",
)
@click.option(
    "--judge-rows",
    type=click.FloatRange(0.5, 1),
    help="Make training rows of the model's own answers from this probability on. [default: none]",
)
@click.option("--max-price-usd", help="Refuse a fine-tune or a comparison that is dearer.")
@click.option("--wait", is_flag=True, help="Wait for what trains or is compared.")
@click.option("--stop", is_flag=True, help="Stop it; its rows, family and versions stay.")
def command(client: Client, name: str, *, wait: bool, stop: bool, **leave: Any) -> Shown:
    """Grow a family for NAME by itself, with the leave that is given, or show how far it is.

    Feedback on its stored decisions becomes rows of its dataset. When its own learning curve
    says that a family would pass, one is trained, answers along, and is compared with production. One
    that is as right within the margin at a lower price stands at the alias "proposed", or in production
    with --policy move. Texts unlike its rows go back to the model before, and an alarm of drift moves
    production back. The server looks every five minutes; this command looks at once.
    """
    growth = client.named_decisions.stop_growing(name) if stop else _grow(client, name, leave)
    while wait and growth.stage in _UNDER_WAY and growth.stopped_at is None:
        time.sleep(_LOOK_S)
        growth = client.named_decisions.turn_growth(name)
    return growth, show_growth


def find_growth(client: Client, name: str) -> Growth | None:
    """Return the growth of a decision; ``None`` where it does not grow."""
    from steelyard.errors import NotFoundError

    try:
        return client.named_decisions.growth(name)
    except NotFoundError:
        return None


def show_growth(growth: Growth) -> None:
    """Print how far a growth is, why it waits, and its newest steps."""
    click.echo(printable(f"Growth: {growth.stage} ({growth.policy.policy}). {growth.waits_for}"))
    lines = [[show_time(step.at), step.stage, step.message] for step in growth.steps[:10]]
    if lines:
        show_table(("AT", "STAGE", "WHAT"), lines)


def _grow(client: Client, name: str, leave: dict[str, Any]) -> Growth:
    given = {field: value for field, value in leave.items() if value is not None}
    growth = find_growth(client, name)
    if given or growth is None or growth.stopped_at is not None:
        policy = growth.policy if growth is not None else None
        before = {} if policy is None else {field: getattr(policy, field) for field in leave}
        client.named_decisions.grow(name, **{**before, **given})
    return client.named_decisions.turn_growth(name)
