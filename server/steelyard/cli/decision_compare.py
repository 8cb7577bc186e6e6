"""``steelyard decision compare`` and ``settle``: versions beside each other, and the labels that judge them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_table
from steelyard.cli.nouns import Shown, asking
from steelyard.cli.options import FILE, PROBABILITY
from steelyard.cli.stored_queries import read_window
from steelyard.cli.terminal import printable, show_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.client import Client
    from steelyard.evaluations.wire import Change
    from steelyard.named.comparison_wire import ComparedSide, NamedComparison
    from steelyard.wire.measures import Measure

#: Stored decisions of a comparison on traffic, where nothing else is said.
_MOST_STORED = 1_000
_EPILOG = """\b
Examples:
  steelyard decision compare support_triage staging
  steelyard decision compare support_triage --with qwen3-4b --traffic 7d
  steelyard decision compare support_triage --recorded answers.csv
  steelyard decision settle support_triage
"""


@asking("compare", "name", epilog=_EPILOG)
@click.argument("version", required=False)
@click.argument("against", default="production")
@click.option(
    "--with", "model", help="In place of VERSION: AGAINST's questions, answered by this model."
)
@click.option(
    "--traffic",
    "traffic_s",
    callback=read_window,
    metavar="TIME",
    help="Stored decisions of this time alone, such as 7d; up to 1,000 of them.",
)
@click.option(
    "--recorded",
    "recorded_file",
    type=FILE,
    help="In place of AGAINST: answers of another provider, a CSV or JSON Lines with text, answer and "
    "probability, spans (OTLP in JSON) with decision.* attributes, logs of OpenAI's Decisions or "
    "Langfuse's generations. [VERSION: production]",
)
@click.option(
    "--disagreement",
    type=PROBABILITY,
    help="Share of answers that may differ where the candidate answers alone. [default: 0.02]",
)
@click.option("--max-price", "max_price_usd", metavar="USD", help="Refuse when it is dearer.")
@click.option("--yes", is_flag=True, help="Do not ask whether the tokens and the price are fine.")
@click.option(
    "--rows", type=click.IntRange(0, 1_000), help="Held-out rows, at most. [default: 300]"
)
@click.option(
    "--stored", type=click.IntRange(0, 1_000), help="Stored decisions, at most. [default: 200]"
)
def compare(
    client: Client,
    name: str,
    *,
    version: str | None,
    against: str,
    model: str | None,
    recorded_file: Path | None,
    yes: bool,
    **options: Any,
) -> Shown:
    """Compare VERSION of NAME with AGAINST, production by default; nothing is moved.

    Both may be an alias or a number. Where nothing is labelled, the recorded texts say how far
    the candidate may answer alone. Exit status 1 unless VERSION passes, or is AGAINST.
    """
    from steelyard.client.switches import version_with_model

    if recorded_file is not None:
        version = version or (None if model else "production")
        options["recorded"] = _read_recorded(recorded_file)
    if (version is None) == (model is None):
        raise click.UsageError("Give a VERSION, or a model with --with.")
    if options["traffic_s"] is not None:
        options["stored"] = options["stored"] or _MOST_STORED
    if version is None:
        version = str(version_with_model(client, name, _at_of(against), str(model)).version)
    numbers = {client.named_decisions.version(name, at).version for at in (version, against)}
    if len(numbers) == 1 and recorded_file is None:
        click.echo(f"Both are version {numbers.pop()}: there is nothing to compare.", err=True)
        raise click.exceptions.Exit(0)
    options["max_price_usd"] = _confirm(client, name, version, against, yes=yes, **options)
    comparison = run_comparison(client, name, _at_of(version), _at_of(against), **options)
    result = comparison.result
    return comparison, show_comparison, result is None or result.verdict != "passed"


@asking("settle", "name", epilog=_EPILOG)
def settle(client: Client, name: str) -> Shown:
    """Open a review of the texts whose labels would settle NAME's newest comparison.

    Once the review is sealed, the same command takes its labels as feedback.
    """
    from steelyard.client import switches

    comparisons = client.named_decisions.comparisons(name)
    newest = next((each for each in comparisons if each.result and not each.recorded), None)
    if newest is None:
        raise click.ClickException(f"No comparison of {printable(name)} has ended; compare first.")
    settling = switches.settle(client, newest)
    return settling.draft, printable(settling.summary)


def run_comparison(
    client: Client,
    name: str,
    version: int | str,
    against: int | str,
    **options: Any,
) -> NamedComparison:
    """Compare two versions, and return the comparison once it has ended."""
    comparison = client.named_decisions.compare(name, version, against=against, **options)
    return client.named_decisions.wait(comparison)


def _confirm(
    client: Client,
    name: str,
    version: str,
    against: str,
    *,
    yes: bool,
    max_price_usd: str | None,
    disagreement: float | None,  # noqa: ARG001
    **window: Any,
) -> str:
    """Print what a comparison would ask and cost, and ask on a terminal; return the most it may cost."""
    estimate = client.named_decisions.estimate_comparison(
        name, _at_of(version), against=_at_of(against), **window
    )
    subject, tokens = "Both are", f"{estimate.input_tokens_before:,} input tokens of {against} and "
    if window.get("recorded"):
        subject, tokens = f"{version} is", ""
    click.echo(
        f"{subject} asked about {estimate.contexts:,} texts: some {tokens}{estimate.input_tokens_after:,} input "
        f"tokens of {version}, {estimate.price_usd} USD here.",
        err=True,
    )
    show_warnings(estimate.warnings)
    if estimate.contexts and not yes and is_on_terminal():
        click.confirm("Go on?", abort=True, err=True)
    return max_price_usd or estimate.price_usd


def _read_recorded(path: Path) -> list[dict[str, Any]]:
    from steelyard.imports.recorded import read_recorded

    answers = read_recorded(path.read_bytes(), path.name)
    if len(answers) > _MOST_STORED:
        click.echo(
            f"{path} has {len(answers):,} answers; the first {_MOST_STORED:,} are taken.", err=True
        )
    return answers[:_MOST_STORED]


def is_on_terminal() -> bool:
    """Whether somebody may answer a question of the command."""
    return sys.stdin.isatty()


def _at_of(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


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
    for name, side in sides:
        if side is not None and side.rules is not None and side.rules.moves:
            moves = ", ".join(
                f"{each.before} > {each.after} ({each.n})" for each in side.rules.moves
            )
            click.echo(printable(f"The rules act otherwise on {name}: {moves}."))
    for switch in result.switches:
        bands = [
            (f"{band.low:g} to {band.high:g}", band.agree.n, measure_line(band.agree))
            for band in switch.bands
        ]
        show_table((f"{switch.decision.upper()}, PROBABILITY", "N", "SAME ANSWER"), bands)
        click.echo(printable(switch.advice))
    to_label = {source for switch in result.switches for source in switch.to_label}
    if to_label:
        command = f"steelyard decision settle {comparison.decision}"
        text = (
            f"{len(to_label)} texts on which both were sure would settle it; review them: {command}"
        )
        click.echo(printable(text))
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
    rules = side.rules
    if rules is not None:
        share = None if rules.changed is None else measure_line(rules.changed)
        yield [name, "(rules)", rules.n, share, None, _change(rules.right), None]


def _change(change: Change | None) -> str | None:
    if change is None:
        return None
    text = f"{change.before:.1%} > {change.after:.1%}"
    if change.low is None or change.high is None:
        return text
    return f"{text} [{change.low:+.1%}, {change.high:+.1%}]"
