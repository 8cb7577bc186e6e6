"""Shares of a named decision's traffic, and of outcomes that are true, as a terminal shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import show_time
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.decision_log.wire import DecisionSeries
    from steelyard.named.wire import NamedShare
    from steelyard.wire.measures import Measure

#: The window of true shares where none is named.
WEEK_S = 7 * 86_400.0


def show_true_shares(series: DecisionSeries, before: str = "") -> None:
    """Print each outcome of a window on a line: how often it is true, and how often the model says it."""
    for each in series.outcomes:
        click.echo(printable(f"{before}{each.decision}, {each.outcome}: {each.in_words()}"))


def show_shares(shares: Sequence[NamedShare]) -> None:
    """Print each share on a line."""
    for share in shares:
        click.echo(printable(describe_share(share)))


def describe_share(share: NamedShare) -> str:
    """Return a share in words, with how often both sides were right."""
    ended = "goes on"
    ramp = share.ramp
    if ramp is not None and ramp.next_at is not None:
        ended = f"{ramp.steps[0]:.0%} follows {show_time(ramp.next_at)}"
    if share.ended_at is not None:
        ended = f"ended {show_time(share.ended_at)} by {share.ended_by}: {share.ended_reason}"
    return (
        f"{share.share:.0%} of {share.alias} ({share.from_version}) to {share.to} "
        f"({share.to_version}) since {show_time(share.created_at)}, {ended}; right on feedback: "
        f"{_measure(share.figures.before)} and {_measure(share.figures.after)}"
    )


def _measure(measure: Measure | None) -> str:
    if measure is None:
        return "none yet"
    from steelyard.wire.measures import interval_text

    ends = interval_text(measure.low, measure.high, form=".1%")
    return f"{measure.value:.1%} [{ends}] of {measure.n}"
