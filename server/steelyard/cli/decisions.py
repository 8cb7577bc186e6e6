"""``steelyard decisions``: stored decisions, to take along."""

from __future__ import annotations

import datetime as dt
from typing import Any

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.exporting import ExportAs, export_options
from steelyard.cli.options import origin_option
from steelyard.cli.times import seconds_of

_EPILOG = """\b
Examples:
  steelyard decisions export --since 2026-11-01 --output decisions.parquet
  steelyard decisions export --decision team --feedback --format hf --output team
"""


@click.group("decisions", epilog=_EPILOG)
def command() -> None:
    """Export stored decisions and their feedback."""


@command.command("export", epilog=_EPILOG)
@click.option(
    "--since", type=click.DateTime(), help="Only those answered at this time of UTC or later."
)
@click.option("--until", type=click.DateTime(), help="Only those answered before this time of UTC.")
@click.option("--model", help="Only those that this model, family or number answered.")
@click.option("--named", help="Only those of this named decision, or of a version: triage@7.")
@click.option("--decision", help="Only the decision of this id.")
@click.option(
    "--feedback/--no-feedback",
    default=None,
    help="Only those with, or only those without feedback.",
)
@click.option("--wrong", is_flag=True, help="Only those whose top outcome did not come true.")
@origin_option
@export_options
@server_options
def export(
    *,
    since: dt.datetime | None,
    until: dt.datetime | None,
    model: str | None,
    named: str | None,
    decision: str | None,
    feedback: bool | None,
    wrong: bool,
    by: Any,
    export_as: ExportAs,
    server: Server,
) -> None:
    """Write the stored decisions, the newest first, a row each, with request and feedback."""
    with server.connected() as client:
        export_as.save(
            server,
            "decisions",
            lambda **given: client.export_decisions_to(
                since=seconds_of(since),
                until=seconds_of(until),
                model=model,
                named=named,
                decision=decision,
                has_feedback=feedback,
                wrong=wrong or None,
                by=by,
                **given,
            ),
        )
