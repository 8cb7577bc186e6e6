"""Lineage changes as an account's webhook events: a comparison of two states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import to_builtins

from steelyard.families.lineage.lineage import FineTune, Lineage, TunedFamily, models_of
from steelyard.outbox.names import Event


@dataclass(frozen=True, slots=True)
class LineageEvent:
    """An event of a family or a fine-tune, before it is published."""

    event: Event
    subject: str
    data: dict[str, Any]


def happenings(before: Lineage, after: Lineage) -> Iterator[LineageEvent]:
    """Return the events between two states of an account's lineage, causes before effects."""
    for job_id, job in after.jobs.items():
        old = before.jobs.get(job_id)
        if old is not job and old is not None and old.is_active and not job.is_active:
            yield from _of_job(after, job)
    for name, family in after.families.items():
        was = before.families.get(name)
        if was is not None and was is not family:
            yield from _of_family(before, after, was, family)


def _of_job(after: Lineage, job: FineTune) -> Iterator[LineageEvent]:
    common = {"family": job.family, "fine_tune_id": job.id}
    if job.gate is not None:
        event: Event = "gate.passed" if job.gate.passed else "gate.failed"
        model = None if job.output_model is None else after.models[job.output_model].ref
        data = {**common, "model": model, "reasons": list(job.gate.reasons)}
        yield LineageEvent(event, job.family, data)
    if job.status in {"succeeded", "failed"}:
        data = {
            "id": job.id,
            "kind": "fine_tune",
            "status": job.status,
            "family": job.family,
            "outcome": job.outcome,
            "error": to_builtins(job.error),
        }
        yield LineageEvent(
            "job.succeeded" if job.status == "succeeded" else "job.failed", job.id, data
        )


def _of_family(
    before: Lineage, after: Lineage, was: TunedFamily, family: TunedFamily
) -> Iterator[LineageEvent]:
    discarded = [
        model.ref
        for model in models_of(after, family)
        if model.status == "discarded" and _was_ready(before, model.adapter)
    ]
    serves = None if family.served is None else after.models[family.served].ref
    if discarded:
        data = {"family": family.name, "serves": serves, "discarded": discarded}
        yield LineageEvent("family.rolled_back", family.name, data)
    if family.moved is not None and family.moved != was.moved:
        data = {"family": family.name, "serves": serves, "served": family.moved.from_ref}
        yield LineageEvent("family.moved", family.name, data)
    if was.switch.is_on and not family.switch.is_on:
        data = {"family": family.name, "reason": family.switch.off_reason}
        yield LineageEvent("family.switched_off", family.name, data)


def _was_ready(before: Lineage, adapter: str) -> bool:
    model = before.models.get(adapter)
    return model is not None and model.status == "ready"
