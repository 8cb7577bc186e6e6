"""``steelyard judge``: how far judges of a server agree with people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_rows
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import ORIGINS_AND_UNKNOWN, PROBABILITY
from steelyard.wire.limits import MAX_THOUGHT_TOKENS, THOUGHT_TOKENS
from steelyard.wire.measures import Measure, interval_text

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.models.judge_wire import Judge
    from steelyard.models.qualification_wire import Qualification, QualificationList

_EPILOG = """\b
Examples:
  steelyard judge qualify qwen ds_01k…
  steelyard judge qualify qwen ds_01k… --labelled-by expert --rows 500
  steelyard judge show qwen
  steelyard judge think qwen --below 0.6 --tokens 200
  steelyard judge think qwen --off
"""
_LOOK_S = 0.5


@click.group("judge", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Hold judges and connected models to labels of people, and let judges think. For operators."""


@command.asks("show", "judge")
def show(client: Client, judge: str) -> Shown:
    """List the qualifications of JUDGE, the newest first, and what changed since each."""
    return client.judges.qualifications(judge), _show


@command.asks("qualify", "judge", "dataset")
@click.option(
    "--rows", type=click.IntRange(50, 2_000), help="Held-out rows, at most. [default: 200]"
)
@click.option(
    "--labelled-by",
    type=ORIGINS_AND_UNKNOWN,
    multiple=True,
    help="Origin of labels that count; repeatable. [default: person and expert]",
)
def qualify(
    client: Client, judge: str, dataset: str, *, rows: int | None, labelled_by: Any
) -> Shown:
    """Ask JUDGE the held-out rows of DATASET that people labelled, and keep how far it agrees.

    Exit status 1 where it agrees too seldom to qualify.
    """
    client.judges.qualify(judge, dataset, rows=rows, labelled_by=list(labelled_by) or None)
    while (task := _task_of(client, judge)).status == "running":
        time.sleep(_LOOK_S)
    if task.error is not None:
        raise click.ClickException(task.error)
    listed = client.judges.qualifications(judge)
    return listed, _show, not listed.is_qualified


@command.asks("think", "judge")
@click.option(
    "--below",
    type=PROBABILITY,
    metavar="P",
    help="Top probability of its first answer below which it writes before it answers again.",
)
@click.option(
    "--tokens",
    type=click.IntRange(1, MAX_THOUGHT_TOKENS),
    help=f"Most tokens that it writes on a decision. [default: {THOUGHT_TOKENS}]",
)
@click.option("--off", is_flag=True, help="Let it answer at once.")
def think(
    client: Client, judge: str, *, below: float | None, tokens: int | None, off: bool
) -> Shown:
    """Set when JUDGE writes before it answers; its calibration ends, since its answers are others.

    `steelyard model calibrate` then measures what that gains and costs.
    """
    if off is (below is not None):
        raise click.UsageError("Give --below P, or --off.")
    return client.judges.think(judge, below, tokens=tokens), _show_thinking


def _show_thinking(judge: Judge) -> None:
    if judge.think is None:
        click.echo(f"{judge.name} answers at once.")
        return
    click.echo(
        f"{judge.name} writes up to {judge.think.tokens} tokens where its first answer is below "
        f"{judge.think.below:g}."
    )


def _task_of(client: Client, judge: str) -> Any:
    return next(each.task for each in client.judges.list().data if each.name == judge)


def _show(listed: QualificationList) -> None:
    def state(qualification: Qualification) -> str:
        if qualification.voided_by:
            return f"void: other {', '.join(qualification.voided_by)}"
        return "qualified" if qualification.passed else "too seldom"

    show_rows(
        listed.data,
        "NO:number, AGREES:agreement, RIGHT:accuracy, LOG_LOSS:log_loss, FLOOR:floor, DATASET:dataset, "
        "AT:created_at, STATE:state",
        agreement=lambda each: _share(each.agreement),
        accuracy=lambda each: _share(each.accuracy),
        log_loss=lambda each: f"{each.log_loss.value:.3f}",
        dataset=lambda each: f"{each.dataset_id} v{each.dataset_version}",
        state=state,
    )
    kin = listed.data[0].kin if listed.data else []
    if kin:
        click.echo(f"Of the same file or model, and likely to err alike: {', '.join(kin)}.")


def _share(measure: Measure) -> str:
    ends = interval_text(measure.low, measure.high, form=".0%")
    return f"{measure.value:.0%} [{ends}] of {measure.n}"
