"""``steelyard alarm``: where models no longer decide as they did."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from steelyard.alarms.budget import WATCHES
from steelyard.cli.local_state import show_rows, show_time
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import UTC_TIME
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.alarms.budget import Watch
    from steelyard.alarms.golden_wire import GoldenState
    from steelyard.alarms.wire import Alarm, AlarmDetail, AlarmRule, AlarmRules
    from steelyard.client import Client
    from steelyard.wire.measures import Measure

_MOST = 200

_EPILOG = """\b
Examples:
  steelyard alarm list
  steelyard alarm show alarm_01k…
  steelyard alarm acknowledge alarm_01k…
  steelyard alarm rules
  steelyard alarm rules --set router --watch shares --watch accuracy
  steelyard alarm rules --set router --golden ds_01k… --every 6
  steelyard alarm check router
  steelyard alarm rules --remove router
"""


@click.group("alarm", cls=Noun, epilog=_EPILOG)
def command() -> None:
    """Show models whose decisions have changed, and the metrics that are watched."""


@command.asks("list")
@click.option("--all", "is_every", is_flag=True, help="Those that have cleared too.")
@click.option("--model", help="Of this model alone.")
def list_alarms(client: Client, *, is_every: bool, model: str | None) -> Shown:
    """List the alarms that have not cleared, the newest first, 200 at most."""
    states = None if is_every else ("raised", "acknowledged")
    return list(islice(client.alarms.list(state=states, model=model), _MOST)), _show_alarms


@command.asks("show", "alarm")
def show(client: Client, alarm: str) -> Shown:
    """Show ALARM with its evidence, and how its figure is now."""
    return client.alarms.get(alarm), _show_detail


@command.asks("acknowledge", "alarm")
def acknowledge(client: Client, alarm: str) -> Shown:
    """Mark ALARM as acknowledged; it clears by itself."""
    return [client.alarms.acknowledge(alarm)], _show_alarms


@command.asks("check", "model")
def check(client: Client, model: str) -> Shown:
    """Ask the golden rows of MODEL now; 'steelyard alarm rules' shows what came of it."""
    return [client.alarms.check_golden(model)], _show_golden


@command.asks("rules")
@click.option(
    "--set", "model", metavar="MODEL", help="Set the rule of MODEL; 'default' of all others."
)
@click.option(
    "--remove",
    "removed",
    metavar="MODEL",
    help="Remove the rule of MODEL, or of all others: 'default'. Past alarms stay.",
)
@click.option("--on/--off", "enabled", default=True, help="Whether anything is watched.")
@click.option(
    "--watch",
    "watches",
    multiple=True,
    type=click.Choice(WATCHES),
    help="What is watched, repeated for more; all by default.",
)
@click.option(
    "--false-alarms",
    type=float,
    help="Chance of a false alarm in 10,000 decisions. [default: 0.01]",
)
@click.option("--evaluation", "evaluation_id", help="The evaluation that it is held against.")
@click.option(
    "--window",
    nargs=2,
    type=UTC_TIME,
    metavar="SINCE UNTIL",
    help="The window, in UTC, whose stored answers it is held against.",
)
@click.option(
    "--golden",
    "golden_dataset",
    metavar="DATASET",
    help="Ask its held-out rows on a clock; answers must not move.",
)
@click.option(
    "--every", "every_hours", type=float, default=24.0, help="Hours between two checks of these."
)
def rules(
    client: Client,
    *,
    model: str | None,
    removed: str | None,
    watches: tuple[Watch, ...],
    window: tuple[float, float] | None,
    **rule: Any,
) -> Shown:
    """Show the watched metrics of each model, or set or remove a rule; the changed model's alarms clear."""
    if model is not None and removed is not None:
        raise click.UsageError("--set and --remove exclude each other; give one of them.")
    options = [rule[name] for name in ("evaluation_id", "false_alarms", "golden_dataset")]
    if model is None and (watches or window or any(options) or not rule["enabled"]):
        raise click.UsageError("--set names no model; give one, or 'default'.")
    if removed is not None:
        return client.alarms.remove_rule(None if removed == "default" else removed), _show_rules
    if model is None:
        return client.alarms.rules(), _show_rules
    since, until = window or (None, None)
    rule.update(watches=watches or None, since=since, until=until)
    return client.alarms.set_rule(None if model == "default" else model, **rule), _show_rules


def _show_alarms(alarms: Sequence[Alarm]) -> None:
    show_rows(
        alarms,
        "ID:id, MODEL:version, DECISION:decision, WATCH:watch, STATE:state, RAISED:raised_at, "
        "CLEARED:cleared_at",
        version=lambda alarm: alarm.version or alarm.model,
    )
    for alarm in alarms:
        click.echo(printable(f"{alarm.id}: {alarm.message}"))


def _show_detail(alarm_detail: AlarmDetail) -> None:
    _show_alarms([alarm_detail.alarm])
    behind = alarm_detail.alarm.evidence.decisions
    evidence = alarm_detail.alarm.evidence
    click.echo(f"\nThen: {_shown(evidence.estimate)}")
    click.echo(f"Reference: {_shown(evidence.reference_estimate)}")
    click.echo(f"Now: {_shown(alarm_detail.now)}")
    if alarm_detail.selection is not None:
        chosen = alarm_detail.selection
        click.echo(
            f"Feedback came on {_shown(chosen.with_feedback)} of the decisions; mean top "
            f"probability {_number(chosen.mean_p_top_with_feedback)} of these, and "
            f"{_number(chosen.mean_p_top)} of all."
        )
    of = f", decision {behind.decision}" if behind.decision else ""
    click.echo(
        printable(
            f"The decisions behind it: {show_time(behind.since)} to {show_time(behind.until)}, model "
            f"{behind.model}{of}."
        )
    )


def _show_rules(alarm_rules: AlarmRules) -> None:
    show_rows(
        alarm_rules.data,
        "MODEL:model, ON:enabled, WATCHES:watches, FALSE ALARMS:false_alarms, AGAINST:reference",
        model=lambda rule: rule.model or "every other",
        watches=lambda rule: (
            "all" if len(rule.watches) == len(WATCHES) else ", ".join(rule.watches)
        ),
        false_alarms=lambda rule: f"{rule.false_alarms:g}",
        reference=_against,
    )
    click.echo()
    show_rows(
        alarm_rules.watched,
        "WATCHED:version, ANSWERS:answers, AGAINST:reference, N:n",
        version=lambda watched: watched.version or watched.model,
        reference=lambda watched: (
            watched.reference and (watched.reference.evaluation_id or "stored answers")
        ),
        n=lambda watched: watched.reference and watched.reference.n,
    )

    if alarm_rules.golden:
        click.echo()
        _show_golden(alarm_rules.golden)


def _show_golden(golden: Sequence[GoldenState]) -> None:
    show_rows(
        golden,
        "GOLDEN ROWS:model, DATASET:golden.dataset_id, EVERY:every, CHECKED:checked, "
        "STALE:is_stale, LAST:last",
        every=lambda each: f"{each.golden.every_hours:g} h",
        checked=lambda each: show_time(each.checked_at) or "not yet",
        last=lambda each: each.checks[0].message or each.checks[0].status if each.checks else "",
    )


def _against(rule: AlarmRule) -> str:
    of = rule.reference
    if of is None:
        return "its own evaluation, or its first answers"
    return of.evaluation_id or f"{show_time(of.since)} to {show_time(of.until)}"


def _shown(measure: Measure | None) -> str:
    if measure is None:
        return "watched no more"
    if measure.low is None or measure.high is None:
        return f"{measure.value:.3f} (n = {measure.n:,})"
    return f"{measure.value:.3f} ({measure.low:.3f} to {measure.high:.3f}, n = {measure.n:,})"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3f}"
