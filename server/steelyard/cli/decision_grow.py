"""``steelyard decision grow``: one turn of the loop of a named decision, with the leave that is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from steelyard.cli.comparison_shown import show_comparison
from steelyard.cli.connecting import Server, server_options
from steelyard.cli.local_state import show_table

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.families.fine_tune_wire import Job
    from steelyard.named.comparison_wire import NamedComparison
    from steelyard.named.wire import NamedDecision

_EPILOG = """\b
Examples:
  steelyard decision grow support_triage
  steelyard decision grow support_triage --policy move --at-least 500 --max-price-usd 2
"""
#: The alias that points to what is proposed.
PROPOSED = "proposed"


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn may do, and by whom."""

    family: str
    at_least: int
    max_price_usd: str | None
    may_move: bool


@click.command("grow", epilog=_EPILOG)
@click.argument("name")
@click.option(
    "--policy",
    type=click.Choice(("rows", "propose", "move")),
    default="propose",
    show_default=True,
    help="Only gather rows; also train and propose what passes; or move production to it.",
)
@click.option("--family", help="The family of its rows. [default: NAME]")
@click.option(
    "--at-least",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="New rows without which nothing is trained.",
)
@click.option("--max-price-usd", help="Refuse a fine-tune that is dearer.")
@server_options
def command(
    *,
    name: str,
    policy: str,
    family: str | None,
    at_least: int,
    max_price_usd: str | None,
    server: Server,
) -> None:
    """Make one turn of the loop of NAME: rows of feedback, a family of them, a version that asks it.

    What was reported on its stored decisions becomes rows of its dataset, which say where they came
    from. With enough new rows its family is trained, and passes its gate or not. A version that asks
    the family is compared with production on held-out rows and stored decisions; one that passes
    stands at the alias "proposed", or in production with --policy move. Run it as often as you like.
    """
    turn = Turn(family or name, at_least, max_price_usd, policy == "move")
    steps: list[list[object]] = []
    comparison = None
    with server.connected() as client:
        decision = client.named_decisions.get(name)
        if decision.dataset_id is None:
            raise click.UsageError(
                f"{name} has no dataset; name one in its file, push it, and grow it then."
            )
        steps.append(["rows", _gather(client, decision)])
        if policy != "rows":
            job, why = _train(client, decision, turn)
            steps.append(["family", why])
            if job is not None and job.outcome == "joined":
                comparison, why = _propose(client, decision, turn)
                steps.append(["version", why])
    server.show(steps, lambda _: show_table(("STEP", "WHAT"), steps))
    if comparison is not None and not server.as_json:
        show_comparison(comparison)


def _gather(client: Client, decision: NamedDecision) -> str:
    """Make rows of feedback, and return what became of it."""
    from steelyard.errors import NoNewRowsError

    try:
        made = client.datasets.from_feedback(dataset_id=decision.dataset_id, named=decision.name)
    except NoNewRowsError:
        return "no new feedback"
    return f"{made.feedback.added} added, {made.rows} in version {made.version} of {made.name}"


def _train(client: Client, decision: NamedDecision, turn: Turn) -> tuple[Job | None, str]:
    """Train the family where there is enough, and return the fine-tune and what it came to."""
    from steelyard.errors import NotFoundError

    dataset = client.datasets.get(str(decision.dataset_id))
    try:
        client.families.get(turn.family)
    except NotFoundError:
        if dataset.split.training < turn.at_least:
            return None, f"waits: {dataset.split.training} of {turn.at_least} training rows"
        job = client.families.create(turn.family, dataset.id, max_price_usd=turn.max_price_usd)
    else:
        check = client.families.check_continue(turn.family)
        new = check.rows.new if check.rows is not None else 0
        if new < turn.at_least:
            return None, f"waits: {new} of {turn.at_least} new training rows"
        job = client.families.continue_(turn.family, max_price_usd=turn.max_price_usd)
    job = client.jobs.wait(job)
    if job.outcome != "joined":
        return job, f"{job.id} {job.status}: {job.outcome or job.reason or job.error}"
    client.families.wait(turn.family, job)
    return job, f"{job.id} passed its gate; {turn.family} serves it"


def _propose(
    client: Client, decision: NamedDecision, turn: Turn
) -> tuple[NamedComparison | None, str]:
    """Compare a version that asks the family with production, and propose or move to it."""
    from steelyard.decisions.named import PRODUCTION
    from steelyard.named.files import content_of

    named, name = client.named_decisions, decision.name
    now = named.version(name)
    if now.model == turn.family:
        return None, f"production, version {now.version}, asks {turn.family} already"
    content = {**content_of(now), "model": turn.family}
    version = named.add_version(name, **content, note=f"asks the family {turn.family}")
    comparison = named.wait(named.compare(name, version.version))
    if comparison.result is None or comparison.result.verdict != "passed":
        verdict = comparison.status if comparison.result is None else comparison.result.verdict
        return comparison, f"version {version.version} is {verdict}; nothing is moved"
    alias = PRODUCTION if turn.may_move else PROPOSED
    named.move(name, alias, version.version, reason=f"grown: passed {comparison.id}")
    return comparison, f"{alias} points to version {version.version}"
