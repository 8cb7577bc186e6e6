"""The events of a family, newest first: time, text, the gate's verdict, and the author."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from steelyard.families.wire import DeletedModelVersion, DiscardedModelVersion, Family, ModelVersion
from steelyard_workbench.kit.terms import everyday
from steelyard_workbench.parts.families.labels import choices_of, mark, outcome_of
from steelyard_workbench.parts.families.verdicts import verdict_of

#: Events that are shown, the newest.
SHOWN = 30
COLUMNS = ("when (UTC)", "what", "gate", "by")
_OWNER, _ITSELF, _GATE = "its owner", "the model line itself", "the check"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    at: float
    what: str
    by: str
    gate: str = ""


def events_of(family: Family) -> list[Event]:
    """Return a family's events, newest first."""
    return sorted(_events(family), key=lambda event: -event.at)[:SHOWN]


def timeline_rows(family: Family) -> list[tuple[str, str, str, str]]:
    """Return a table row an event."""
    return [
        (
            f"{datetime.fromtimestamp(event.at, UTC):%Y-%m-%d %H:%M}",
            event.what,
            event.gate or "—",
            event.by,
        )
        for event in events_of(family)
    ]


def _events(family: Family) -> Iterator[Event]:
    yield Event(family.created_at, f"started from {family.origin}", _OWNER)
    for choice in choices_of(family):
        job = choice.job
        started = f"fine-tune on version {job.dataset_version} started"
        status, word = outcome_of(job)
        if job.outcome in {"gate_failed", "failed", "cancelled"} and choice.model is None:
            why = f": {everyday(job.reason)}" if job.reason else ""
            is_judged = job.outcome == "gate_failed"
            yield Event(
                job.created_at,
                f"{started}; it made no model{why}",
                _OWNER,
                "✗ not passed" if is_judged else mark(status, word),
            )
        else:
            yield Event(job.created_at, started, _OWNER)
    for model in family.models:
        if isinstance(model, DeletedModelVersion):
            yield Event(model.deleted_at, f"{model.ref} deleted", _OWNER)
        else:
            yield from _model_events(model)
    if family.moved is not None:
        to = "its latest model" if family.served is None else family.served.ref
        came = family.moved.from_ or "no model"
        yield Event(family.moved.at, f"moved from {came} to {to}", _ITSELF)
    if family.off_at is not None and not family.switched_on:
        is_idle = family.off_reason == "idle"
        who = "the server, because it was not used" if is_idle else _OWNER
        yield Event(family.off_at, "switched off", who)
    if family.keep_warm_stopped_at is not None:
        yield Event(family.keep_warm_stopped_at, "not kept warm any more", "the server")


def _model_events(model: ModelVersion) -> Iterator[Event]:
    if model.created_at is not None:
        gate = "" if model.gate is None else verdict_of(model.gate)
        verdict_mark = "" if isinstance(gate, str) else mark(gate.status, gate.word)
        yield Event(model.created_at, f"{model.ref} joined", _GATE, verdict_mark)
    if model.on_at is not None:
        yield Event(model.on_at, f"own switch of {model.ref} on", _OWNER)
    if isinstance(model, DiscardedModelVersion):
        yield Event(model.discarded_at, f"{model.ref} discarded by a rollback", _OWNER)
