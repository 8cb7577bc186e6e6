"""Calls of the alarm routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.alarms.budget import Watch
from steelyard.alarms.golden_wire import GoldenState
from steelyard.alarms.wire import Alarm, AlarmDetail, AlarmPage, AlarmRules
from steelyard.client.calls import Call, write
from steelyard.client.routes import route


@route("GET /v1/alarms", AlarmPage)
def page(
    *,
    state: str | Sequence[str] | None = None,
    model: str | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[AlarmPage]:
    """List alarms, newest first: ``GET /v1/alarms``."""


@route("GET /v1/alarms/{alarm_id}", AlarmDetail)
def get(alarm_id: str) -> Call[AlarmDetail]:
    """Return an alarm, and how its figure is now: ``GET /v1/alarms/{alarm}``."""


@route("POST /v1/alarms/{alarm_id}/acknowledge", Alarm)
def acknowledge(alarm_id: str, *, idempotency_key: str | None = None) -> Call[Alarm]:
    """Acknowledge an alarm: ``POST /v1/alarms/{alarm}/acknowledge``."""


@route("GET /v1/alarms/rules", AlarmRules)
def rules() -> Call[AlarmRules]:
    """Return each model's watched metrics: ``GET /v1/alarms/rules``."""


def set_rule(
    model: str | None = None,
    *,
    enabled: bool = True,
    watches: Sequence[Watch] | None = None,
    false_alarms: float | None = None,
    evaluation_id: str | None = None,
    since: float | None = None,
    until: float | None = None,
    golden_dataset: str | None = None,
    every_hours: float = 24.0,
    idempotency_key: str | None = None,
) -> Call[AlarmRules]:
    """Set a model's watched metrics and clear its alarms: ``PUT /v1/alarms/rules``.

    Parameters
    ----------
    model
        A family, base model or route; without one, every model that has no rule of its own.
    watches
        Such as ``["shares", "accuracy"]``; all by default.
    false_alarms
        The chance that 10,000 decisions of a model that did not change raise an alarm; 0.01.
    evaluation_id, since, until
        The reference: an evaluation, or the stored answers of a window. By default the evaluation
        that a family's fine-tune made, else the first 1,000 answers.
    golden_dataset
        A dataset whose held-out rows the model is asked every ``every_hours``: answers that move
        beyond chance raise an alarm. ``model`` may then be ``decision:NAME``.
    """
    chosen = {"evaluation_id": evaluation_id, "since": since, "until": until}
    reference = {name: value for name, value in chosen.items() if value is not None}
    fields = {
        "model": model,
        "enabled": enabled,
        "watches": None if watches is None else list(watches),
        "false_alarms": false_alarms,
        "reference": reference or None,
        "golden": golden_dataset and {"dataset_id": golden_dataset, "every_hours": every_hours},
    }
    return write("/v1/alarms/rules", AlarmRules, fields, key=idempotency_key, method="PUT")


@route("POST /v1/alarms/golden", GoldenState)
def check_golden(model: str, *, idempotency_key: str | None = None) -> Call[GoldenState]:
    """Ask a model's golden rows now: ``POST /v1/alarms/golden``; follow it with ``rules``."""


@route("DELETE /v1/alarms/rules", AlarmRules)
def remove_rule(
    model: str | None = None, *, idempotency_key: str | None = None
) -> Call[AlarmRules]:
    """Remove a rule; its models' alarms clear, and past alarms stay: ``DELETE /v1/alarms/rules``.

    The general rule holds for its model again. Without a model it is the general rule itself that
    goes: everything is watched as it is by default.
    """
