"""``steelyard review``: the reviews of a server's datasets, and who labels which of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_rows, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import ORIGINS_AND_UNKNOWN, SHARE
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.review.duties_wire import Assignment, Assignments
    from steelyard.wire.measures import Measure

_EPILOG = """\b
Examples:
  steelyard review start tickets
  steelyard review assign draft_… ann@example.org bob@example.org --overlap 0.2
  steelyard review assign draft_… ann@example.org --known 0.1 --known-by expert
  steelyard review show draft_…
  steelyard review move draft_… ann@example.org --to bob@example.org
"""


@click.group("review", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Begin reviews of a running server's datasets, assign their rows, and show how far people are."""


@command.asks("start", "dataset")
@click.option("--version", type=int, help="A version. [default: the latest]")
@click.option("--name", help="Name of the review. [default: the dataset's]")
def start(client: Client, dataset: str, **given: Any) -> Shown:
    """Begin a review of a dataset, by id or name."""
    draft = client.drafts.create(dataset, **given)
    return draft, draft.id


@command.asks("list")
@click.option("--dataset", "dataset_id", help="Those of one dataset, by id or name.")
def list_reviews(client: Client, *, dataset_id: str | None) -> Shown:
    """List reviews, the newest first."""
    return client.drafts.list(dataset_id=dataset_id), _show_reviews


@command.asks("show", "review")
def show(client: Client, review: str) -> Shown:
    """Show who labels how many rows of a review, and how far each is."""
    return client.drafts.assignments(review), _show_assignments


@command.asks("assign", "review")
@click.argument("reviewers", nargs=-1, required=True)
@click.option("--overlap", type=SHARE, default=0, help="Share of the rows that two label apart.")
@click.option(
    "--known",
    "known_share",
    type=click.FloatRange(0, 0.5),
    help="Share of the rows that are known ones, which score their reviewers. [default: none]",
)
@click.option(
    "--known-by",
    type=ORIGINS_AND_UNKNOWN,
    help="Where the labels of known rows came from. [default: expert]",
)
@click.option("--limit", type=click.IntRange(1), help="The most rows. [default: all]")
def assign(client: Client, review: str, reviewers: tuple[str, ...], **given: Any) -> Shown:
    """Split a review's undecided rows evenly among REVIEWERS.

    These are addresses where people sign in: those who are only invited have their rows once they do.
    Known rows keep their labels, whatever is answered; with them, reviewers see no label of any row.
    """
    return client.drafts.assign(review, reviewers, **given), _show_assignment


@command.asks("move", "review", "reviewer")
@click.option("--to", help="Reviewer who gets them. [default: none]")
def move(client: Client, review: str, reviewer: str, *, to: str | None) -> Shown:
    """Hand the unfinished rows of REVIEWER to another, or take them away."""
    moved = client.drafts.move_assigned(review, reviewer, to)
    return moved, f"{moved.moved} rows moved, {moved.kept} stay."


_show_reviews = table_of(
    "ID:id, NAME:name, DATASET:dataset_id, VERSION:dataset_version, STATUS:status, MADE:created_at"
)


def _show_assignments(assignments: Assignments) -> None:
    show_rows(
        assignments,
        "REVIEWER:reviewer, DONE:done, OF:rows, APART:blind, RIGHT OF KNOWN:known",
        known=lambda each: _score_text(each.known),
    )
    click.echo(f"Undecided rows without a reviewer: {assignments.unassigned}.")


def _show_assignment(assignment: Assignment) -> None:
    shares = ", ".join(f"{name} {n}" for name, n in assignment.reviewers.items())
    known = f", {assignment.known} known" if assignment.known else ""
    text = f"{assignment.rows} rows assigned, {assignment.blind} of them to two{known}: {shares}."
    click.echo(printable(text))


def _score_text(score: Measure | None) -> str | None:
    """Return how many known rows a reviewer answered right, with the interval of the share."""
    if score is None:
        return None
    from steelyard.wire.measures import interval_text

    ends = interval_text(score.low, score.high, form=".2f", to=" to ")
    return f"{round(score.value * score.n)} of {score.n} ({ends})"
