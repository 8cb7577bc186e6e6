"""How lineage is shown to callers: the families, models and fine-tunes of the wire."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from steelyard.families import wire
from steelyard.families.fine_tune_wire import Job, JobLimits, JobMetrics, JobProgress
from steelyard.families.lineage.continuing import NewRows, continue_to_wire
from steelyard.families.lineage.lineage import (
    Conditions,
    FamilyModel,
    FineTune,
    Lineage,
    TunedFamily,
    WarmHour,
    idle_at,
    latest_of,
    model_idle_at,
    models_of,
)
from steelyard.families.lineage.moving import waiting_move
from steelyard.ledger.money import to_usd
from steelyard.wire.filling import filled
from steelyard.wire.training import CurvePoint

#: How a fine-tune ended that made no model.
_UNMADE = ("gate_failed", "failed", "cancelled")


def family_to_wire(
    lineage: Lineage,
    family: TunedFamily,
    conditions: Conditions,
    *,
    growth: NewRows | UnsetType | None = UNSET,
    with_jobs: bool = False,
) -> wire.Family:
    """Return a family as the wire tells it."""
    served = None if family.served is None else lineage.models[family.served]
    latest = latest_of(lineage, family)
    window = lineage.windows.get(family.served or "") if family.keep_warm else None
    continues = (
        continue_to_wire(lineage, family, growth, conditions)
        if isinstance(growth, NewRows)
        else growth
    )
    moved = family.moved
    return wire.Family(
        id=family.name,
        switched_on=family.switch.is_on,
        used_at=family.created_at if family.switch.used_at is None else family.switch.used_at,
        switches_off_at=idle_at(family, conditions),
        off_reason=family.switch.off_reason,
        off_at=family.switch.off_at,
        dataset_id=family.dataset_id,
        origin=family.origin,
        created_at=family.created_at,
        served=None if served is None else ready_model_to_wire(lineage, served, conditions),
        latest=None if latest is None else ready_model_to_wire(lineage, latest, conditions),
        models=[model_to_wire(lineage, model, conditions) for model in models_of(lineage, family)],
        keep_warm=family.keep_warm,
        keep_warm_window=_window_to_wire(window),
        keep_warm_stopped_at=family.keep_warm_stopped_at,
        move=waiting_move(lineage, family, conditions),
        moved=None if moved is None else wire.Moved(at=moved.at, from_=moved.from_ref),
        bound=UNSET if family.bound is None else family.bound.shown,
        novelty=UNSET
        if family.false_alarms is None
        else wire.FamilyNovelty(false_alarms=family.false_alarms),
        continue_=continues,
        jobs=_jobs_to_wire(lineage, family) if with_jobs else UNSET,
    )


def model_to_wire(
    lineage: Lineage, model: FamilyModel, conditions: Conditions
) -> wire.ModelVersion | wire.DiscardedModelVersion | wire.DeletedModelVersion:
    """Return a model as the wire has it, whatever became of it."""
    if model.status == "deleted":
        return filled(wire.DeletedModelVersion, model, deleted_at=_time(model.deleted_at))
    if model.status == "discarded":
        members = _members(lineage, model, conditions)
        return wire.DiscardedModelVersion(**members, discarded_at=_time(model.discarded_at))
    return ready_model_to_wire(lineage, model, conditions)


def ready_model_to_wire(
    lineage: Lineage, model: FamilyModel, conditions: Conditions
) -> wire.ModelVersion:
    """Return a model that still is as the wire tells it."""
    return wire.ModelVersion(**_members(lineage, model, conditions))


def fine_tune_to_wire(
    job: FineTune,
    *,
    progress: JobProgress | None = None,
    curve: list[CurvePoint] | UnsetType | None = UNSET,
    warnings: list[str] | UnsetType = UNSET,
) -> Job:
    """Return a fine-tune as the wire tells it."""
    return filled(
        Job,
        job,
        model=job.base,
        dataset_evaluation=UNSET,
        metrics=None if job.gate is None else JobMetrics(gate=job.gate),
        limits=JobLimits(max_questions=job.max_questions),
        progress=progress if job.status in {"running", "cancelling"} else None,
        curve=curve if job.status == "succeeded" else UNSET,
        warnings=warnings,
        price_usd=to_usd(job.price_nano),
    )


def _members(lineage: Lineage, model: FamilyModel, conditions: Conditions) -> dict[str, Any]:
    return {
        "version": model.version,
        "ref": model.ref,
        "adapter": model.adapter,
        "state": conditions.state_of(model.adapter),
        "on_at": model.switch.on_at,
        "keep_warm": model.keep_warm,
        "keep_warm_window": (
            _window_to_wire(lineage.windows.get(model.adapter)) if model.keep_warm else None
        ),
        "keep_warm_stopped_at": model.keep_warm_stopped_at,
        "used_at": model.switch.used_at,
        "switches_off_at": model_idle_at(model, conditions),
        "off_reason": model.switch.off_reason,
        "off_at": model.switch.off_at,
        "parent": model.parent,
        "created_at": model.created_at,
        "gate": model.gate,
        "heldout": model.heldout,
    }


def _window_to_wire(window: WarmHour | None) -> wire.Window | None:
    if window is None:
        return None
    return wire.Window(
        started_at=window.started_at,
        ends_at=window.ends_at,
        reserved_usd=to_usd(window.reserved_nano),
    )


def _jobs_to_wire(lineage: Lineage, family: TunedFamily) -> list[wire.FamilyJob]:
    listed = []
    for job_id in reversed(family.jobs):
        job = lineage.jobs[job_id]
        listed.append(
            filled(
                wire.FamilyJob,
                job,
                reason=job.reason if job.outcome in _UNMADE else None,
                price_usd=to_usd(job.price_nano),
            )
        )
    return listed


def _time(at: float | None) -> float:
    if at is None:
        raise ValueError("A model that is gone has the time when it went.")
    return at
