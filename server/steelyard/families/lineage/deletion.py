"""Deletion of families and models: for good, and never while they answer or are used."""

from __future__ import annotations

from msgspec import UNSET, structs

from steelyard import errors
from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.events import DropModel
from steelyard.families.lineage.lineage import Conditions, Lineage, active_job, answering, latest_of
from steelyard.families.lineage.references import Guard, check_adapter, check_latest, find_model
from steelyard.families.lineage.rollback import check_unused


def delete_family(
    lineage: Lineage,
    name: str,
    conditions: Conditions,
    *,
    dataset_id: str | None = None,
    latest: Guard = UNSET,
) -> LineageChange:
    """Delete a family with every model of its line; its dataset and its fine-tunes stay.

    The name of one that never had a model is free again; any other's is never given again, and
    deleting it again changes nothing.
    """
    draft = LineageDraft(lineage, conditions)
    family = lineage.families.get(name)
    if family is None:
        raise errors.NotFoundError(f"There is no family named {name[:60]!r}; see GET /v1/families.")
    if family.deleted_at is not None:
        return draft.done()
    check_latest(lineage, family, latest)
    if dataset_id is not None and dataset_id != family.dataset_id:
        raise errors.FamilyChangedError(
            f"The family {name} grows on the dataset {family.dataset_id}; read it again and decide "
            "again."
        )
    _check_quiet(lineage, name)
    check_unused(lineage, conditions, set(family.models), by=name)
    for job_id in family.jobs:
        draft.put_job(structs.replace(lineage.jobs[job_id], family_deleted=True))
    if not family.models:
        families = {other: lineage.families[other] for other in lineage.families if other != name}
        draft.lineage = structs.replace(draft.lineage, families=families)
        return draft.done()
    for adapter in family.models:
        _delete(draft, adapter)
    draft.switch_family_off(name, "owner")
    draft.change_family(name, deleted_at=draft.now, served=None, moved=None)
    return draft.done()


def delete_model(
    lineage: Lineage, reference: str, conditions: Conditions, *, adapter: str | None = None
) -> LineageChange:
    """Delete a model by number; deleting one that is gone changes nothing."""
    draft = LineageDraft(lineage, conditions)
    model = find_model(lineage, reference)
    check_adapter(model, adapter)
    if model.status != "ready":
        return draft.done()
    family = lineage.families[model.family]
    if model == latest_of(lineage, family):
        raise errors.LatestModelError(
            f"{model.ref} is the latest model of {family.name}; roll the family back to an older "
            "one instead."
        )
    if model.adapter in answering(lineage):
        raise errors.ModelAnswersError(
            f"{model.ref} answers calls; switch it off, or wait until {family.name} has moved on."
        )
    check_unused(lineage, conditions, {model.adapter}, by=family.name)
    _delete(draft, model.adapter)
    if family.served == model.adapter:
        draft.change_family(family.name, served=None, moved=None)
    return draft.done()


def _check_quiet(lineage: Lineage, name: str) -> None:
    family = lineage.families[name]
    answers = sorted(lineage.models[a].ref for a in answering(lineage).keys() & set(family.models))
    if answers:
        raise errors.FamilyAnswersError(
            f"{', '.join(answers[:3])} still answers calls; switch {name} and its models off first."
        )
    if active_job(lineage, family) is not None:
        raise errors.FamilyTrainingError(
            f"A fine-tune of {name} has not ended; cancel it or wait for it first."
        )


def _delete(draft: LineageDraft, adapter: str) -> None:
    if draft.lineage.models[adapter].status == "ready":
        draft.effects.append(DropModel(adapter))
    draft.change_model(adapter, status="deleted", deleted_at=draft.now)
