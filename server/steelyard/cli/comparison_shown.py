"""A comparison of two versions of a named decision, as a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import show_table
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.evaluations.wire import Change
    from steelyard.named.comparison_wire import ComparedSide, NamedComparison
    from steelyard.wire.measures import Measure


def show_comparison(comparison: NamedComparison) -> None:
    """Print the verdict, its reasons, the changed rows and the price."""
    result = comparison.result
    of = f"{comparison.decision}@{comparison.version} against {comparison.other}"
    if result is None:
        click.echo(printable(f"{of}: {comparison.status}. {comparison.error or ''}"))
        return
    click.echo(printable(f"{of}: {result.verdict}"))
    for sentence in result.sentences:
        click.echo(printable(f"- {sentence}"))
    click.echo(printable(f"Changed: {', '.join(result.changes) or 'nothing'}."))
    sides = (("held-out rows", result.rows), ("stored", result.stored))
    lines = [line for name, side in sides if side is not None for line in _lines(name, side)]
    if lines:
        show_table(("ON", "DECISION", "N", "OTHER ACTION", "ABSTAINED", "RIGHT", "WRONG"), lines)
    for switch in result.switches:
        bands = [
            (f"{band.low:g} to {band.high:g}", band.agree.n, measure_line(band.agree))
            for band in switch.bands
        ]
        show_table((f"{switch.decision.upper()}, PROBABILITY", "N", "SAME ANSWER"), bands)
        click.echo(printable(switch.advice))
        if switch.to_label:
            click.echo(f"Labels that would settle it: {', '.join(switch.to_label)}")
    for warning in result.warnings:
        click.echo(printable(warning))
    price = result.price
    if price is not None:
        click.echo(
            f"Of 1,000 requests: {price.usd_before} USD before, {price.usd_after} USD after; "
            f"{price.input_tokens_before:.0f} and {price.input_tokens_after:.0f} tokens each."
        )
    if result.left_out:
        click.echo(f"{result.left_out} contexts are longer than one of the models reads.")


def measure_line(measure: Measure) -> str:
    """Return a share with its interval."""
    if measure.low is None or measure.high is None:
        return f"{measure.value:.1%}"
    return f"{measure.value:.1%} [{measure.low:.1%}, {measure.high:.1%}]"


def _lines(name: str, side: ComparedSide) -> Iterator[list[object]]:
    for decision in side.decisions:
        share = None if decision.changed is None else measure_line(decision.changed)
        figures = (decision.abstained, decision.right, decision.wrong)
        yield [name, decision.decision, decision.n, share, *map(_change, figures)]


def _change(change: Change | None) -> str | None:
    if change is None:
        return None
    text = f"{change.before:.1%} > {change.after:.1%}"
    if change.low is None or change.high is None:
        return text
    return f"{text} [{change.low:+.1%}, {change.high:+.1%}]"
