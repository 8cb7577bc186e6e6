"""``steelyard decisions``: stored decisions, to check, to correct shares by, and to take along."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.exporting import ExportAs, export_options
from steelyard.cli.local_state import show_rows
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import origin_option, stored_options
from steelyard.cli.shares_shown import WEEK_S, show_true_shares

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.decision_log.wire import DecisionLogPage, LoggedDecision

_EPILOG = """\b
Examples:
  steelyard decisions export --since 2026-11-01 --output decisions.parquet
  steelyard decisions export --decision team --feedback --format hf --output team
  steelyard decisions sample refund --rows 20 --since 2026-11-01
  steelyard decisions sample refund --outcome yes
  steelyard decisions shares --since 2026-11-01
"""


@click.group("decisions", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Draw stored decisions to check, correct shares by the checks, and export them."""


@command.asks("sample", "decision")
@click.option("--rows", type=click.IntRange(1, 200), default=20, help="Answers to list, at most.")
@click.option("--outcome", help="Draw by strata of the probability of this outcome, if it is rare.")
@stored_options
def sample(
    client: Client,
    *,
    decision: str,
    rows: int,
    outcome: str | None,
    since: float | None,
    **given: Any,
) -> Shown:
    """List answers of DECISION that chance drew and that have no feedback, of the last week by default.

    Report the right outcome of each, from the first on: those make the true share of the command
    shares. Answers that are picked by hand do not count there.
    """
    page = client.decision_log(
        order="chance" if outcome is None else "strata",
        outcome=outcome,
        decision=decision,
        has_feedback=False,
        limit=rows,
        since=_begin(since),
        **given,
    )

    def show(page: DecisionLogPage) -> None:
        def result_of(logged: LoggedDecision) -> Any:
            return logged.decisions[decision]

        show_rows(
            page.data,
            "ID:id, ANSWER:answer, P:p_top, TEXT:text",
            answer=lambda logged: result_of(logged).top,
            p_top=lambda logged: f"{result_of(logged).p_top:.2f}",
        )

    return page, show


@command.asks("shares")
@click.option("--decision", help="Only the decision of this id.")
@origin_option
@stored_options
def shares(client: Client, *, since: float | None, **given: Any) -> Shown:
    """Print how often each outcome is true beside how often the model says it.

    Of the last week by default.
    True shares are of answers that were checked in the order of the command sample.
    """
    series = client.decision_series(since=_begin(since), bucket_s=86_400, **given)
    return series, show_true_shares


def _begin(since: float | None) -> float:
    return time.time() - WEEK_S if since is None else since


@command.asks("export")
@stored_options
@click.option("--decision", help="Only the decision of this id.")
@click.option(
    "--feedback/--no-feedback",
    "has_feedback",
    default=None,
    help="Only those with, or only those without feedback.",
)
@click.option("--wrong", is_flag=True, help="Only those whose top outcome did not come true.")
@origin_option
@export_options
def export(client: Client, *, wrong: bool, export_as: ExportAs, **which: Any) -> Shown:
    """Write the stored decisions, the newest first, a row each, with request and feedback."""
    which["wrong"] = wrong or None
    return export_as.save("decisions", client.export_decisions_to, **which)
