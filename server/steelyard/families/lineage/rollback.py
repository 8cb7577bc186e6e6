"""Rollback: a family goes back to an older model, and the newer ones are discarded for good.

All of it happens in one step. A family that is on and served a discarded model means the older one
from then on; where that one is not loaded, calls wait for it as for any model that is loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from steelyard import errors
from steelyard.families.lineage import references
from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.events import CancelEvaluation, DropModel
from steelyard.families.lineage.fine_tunes import request_cancel
from steelyard.families.lineage.lineage import (
    Conditions,
    FamilyModel,
    FineTune,
    Lineage,
    TunedFamily,
    active_job,
    latest_of,
    models_of,
)
from steelyard.wire.violations import BODY


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The effect of a rollback."""

    to: FamilyModel
    discard: tuple[FamilyModel, ...]
    job: FineTune | None
    evaluations: tuple[str, ...]

    @property
    def cancelled(self) -> list[str]:
        """Ids of all the work that would be cancelled."""
        return [*([] if self.job is None else [self.job.id]), *self.evaluations]


def plan_rollback(lineage: Lineage, name: str, to: str, conditions: Conditions) -> RollbackPlan:
    """Return the effect of rolling a family back to one of its models."""
    family = references.find_family(lineage, name)
    path = (*BODY, "to")
    if references.parse_reference(to, path)[0] != name:
        raise errors.InvalidReferenceError(
            f"{to} is no model of {name}; name one of its own.", path=path
        )
    model = references.find_ready_model(lineage, to, path)
    if model == latest_of(lineage, family):
        raise errors.NothingToRollBackError(f"{model.ref} is the latest model of {name} already.")
    discard = tuple(
        newer
        for newer in models_of(lineage, family)
        if newer.version > model.version and newer.status == "ready"
    )
    adapters = {newer.adapter for newer in discard}
    # One that uses several of them is cancelled once.
    evaluations = tuple(
        dict.fromkeys(use.id for use in conditions.work if use.yields and use.adapter in adapters)
    )
    return RollbackPlan(
        to=model, discard=discard, job=active_job(lineage, family), evaluations=evaluations
    )


def roll_back(
    lineage: Lineage,
    name: str,
    to: str,
    discard: Sequence[str],
    conditions: Conditions,
    *,
    served: references.Guard = UNSET,
) -> LineageChange:
    """Take a family back to an older model."""
    draft = LineageDraft(lineage, conditions)
    family = references.find_family(lineage, name)
    references.check_served(family, served)
    plan = plan_rollback(lineage, name, to, conditions)
    refs = [model.ref for model in plan.discard]
    if set(discard) != set(refs):
        raise errors.RollbackChangedError(
            f"Going back to {to} would discard {', '.join(refs)}; confirm exactly these in "
            "discard.",
            details=[{"discard": refs, "cancel": plan.cancelled}],
        )
    adapters = {model.adapter for model in plan.discard}
    check_unused(lineage, conditions, adapters, by=name, may_cancel_evaluations=True)
    if plan.job is not None:
        request_cancel(draft, plan.job.id, f"{name} is rolled back to {to}.")
    draft.effects.extend(CancelEvaluation(evaluation) for evaluation in plan.evaluations)
    for model in plan.discard:
        _discard(draft, model, plan.to)
    follow = _serve(draft, family, plan.to, adapters)
    return draft.done(follow)


def check_unused(
    lineage: Lineage,
    conditions: Conditions,
    adapters: set[str],
    *,
    by: str,
    may_cancel_evaluations: bool = False,
) -> None:
    """Refuse to go on while work needs models that would be gone."""
    users = {
        use.id
        for use in conditions.work
        if use.adapter in adapters and not (may_cancel_evaluations and use.yields)
    }
    users.update(
        job.id
        for job in lineage.jobs.values()
        if job.is_active and job.parent in adapters and job.family != by
    )
    if users:
        raise errors.VersionInUseError(
            f"{', '.join(sorted(users)[:3])} still uses a model that would be gone; wait for it or "
            "cancel it."
        )


def _discard(draft: LineageDraft, model: FamilyModel, to: FamilyModel) -> None:
    draft.switch_model_off(model.adapter, "owner")
    draft.change_model(model.adapter, status="discarded", discarded_at=draft.now)
    draft.change_job(model.job_id, outcome="rolled_back")
    draft.add_event(model.job_id, "rolled_back", f"A rollback to {to.ref} discarded {model.ref}.")
    draft.effects.append(DropModel(model.adapter))


def _serve(
    draft: LineageDraft, family: TunedFamily, to: FamilyModel, discarded: set[str]
) -> dict[str, str]:
    if family.served not in discarded:
        draft.change_family(family.name, moved=None)
        return {}
    draft.change_family(family.name, served=to.adapter, moved=None)
    if family.switch.is_on and family.keep_warm and family.served is not None:
        return {family.served: to.adapter}
    return {}
