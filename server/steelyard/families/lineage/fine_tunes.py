"""Fine-tunes: from the queue to a model that joins its family, or to the reason why none does.

A fee is held when a fine-tune is queued, charged when it succeeds, whatever the gate says, and
released when it fails or is cancelled. A fine-tune whose model answers first leaves its hold to the one
that follows it. Every step of a running fine-tune may be reported again after a crash: one that has ended
stays as it ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, Struct, UnsetType, structs

from steelyard import errors
from steelyard.evaluations.gate_wire import Gate
from steelyard.families.fine_tune_wire import (
    EventType,
    JobError,
    ResolvedHyperparameters,
)
from steelyard.families.lineage import references
from steelyard.families.lineage.continuing import NewRows, check_continue
from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.events import CancelFineTune, QueueJob
from steelyard.families.lineage.lineage import (
    Conditions,
    FamilyModel,
    FineTune,
    Lineage,
    Switch,
    TunedFamily,
    active_job,
    adapter_of,
    base_under,
    parent_of,
)
from steelyard.families.lineage.plan import TuningPlan
from steelyard.families.wire import Charge
from steelyard.ledger.max_price import check_price
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.violations import BODY

_FROM = (*BODY, "from")


class Order(Struct, frozen=True, kw_only=True):
    """A fine-tune to be queued."""

    id: str
    plan: TuningPlan
    price_nano: int


@dataclass(frozen=True, slots=True)
class Origin:
    """The start of a first fine-tune: a base model, and the tuned model on it if any."""

    name: str
    base: str
    model: FamilyModel | None


def resolve_origin(lineage: Lineage, name: str, conditions: Conditions) -> Origin:
    """Return the model that a name stands for, as a start."""
    if name in conditions.base_models:
        return Origin(name, name, None)
    try:
        model = references.find_ready_model(lineage, name, _FROM)
    except errors.NotFoundError as error:
        raise errors.InvalidReferenceError(
            f"{name[:60]!r} is no model to start from; give a base model of GET /v1/models, or a "
            "number of yours, such as 'router@3'.",
            path=_FROM,
        ) from error
    if model.base not in conditions.base_models:
        raise errors.InvalidReferenceError(
            f"{name} is tuned from {model.base}, which is not here; give a model whose base is.",
            path=_FROM,
        )
    return Origin(name, model.base, model)


def check_start(lineage: Lineage, name: str, origin: str, conditions: Conditions) -> Origin:
    """Refuse an invalid new family, for a start and for its estimate."""
    references.check_name(name, conditions.base_models)
    known = lineage.families.get(name)
    if known is not None:
        was = "belongs to a family" if known.deleted_at is None else "was a family's with models"
        raise errors.FamilyExistsError(f"The name {name!r} {was}; give another name.")
    return resolve_origin(lineage, origin, conditions)


def start_family(
    lineage: Lineage,
    name: str,
    origin: str,
    order: Order,
    conditions: Conditions,
    *,
    max_price_usd: str | None = None,
) -> LineageChange:
    """Make a family, switched on from its birth, and queue its first fine-tune."""
    start = check_start(lineage, name, origin, conditions)
    draft = LineageDraft(lineage, conditions)
    family = TunedFamily(
        name=name,
        dataset_id=order.plan.dataset_id,
        method=order.plan.method,
        origin=origin,
        origin_adapter=None if start.model is None else start.model.adapter,
        base=start.base,
        created_at=draft.now,
        switch=Switch().turned_on(draft.now),
    )
    draft.put_family(family)
    parent = None if start.model is None else start.model.adapter
    _queue(draft, family, parent, order, max_price_usd)
    return draft.done()


def continue_family(
    lineage: Lineage,
    name: str,
    order: Order,
    growth: NewRows,
    conditions: Conditions,
    *,
    latest: references.Guard = UNSET,
    max_price_usd: str | None = None,
) -> LineageChange:
    """Queue a family's next fine-tune, from its latest model on the rows it has not trained on.

    One that moves the family to another base model starts from that.
    """
    family, plan = references.find_family(lineage, name), order.plan
    references.check_latest(lineage, family, latest)
    check_continue(
        lineage, family, growth, conditions, dataset_version=plan.dataset_version, base=plan.base
    )
    parent = parent_of(lineage, family)
    if plan.is_move != (plan.base != base_under(lineage, family, parent)):
        # Its rows and its price are those of the other case.
        raise errors.FamilyChangedError(
            f"The latest model of {name} changed while this was planned, and its base model with "
            "it; read the family again and decide again."
        )
    draft = LineageDraft(lineage, conditions)
    _queue(draft, family, parent, order, max_price_usd)
    return draft.done()


def start_job(lineage: Lineage, job_id: str, conditions: Conditions) -> LineageChange:
    """Mark a queued fine-tune as running; any other stays as it is."""
    draft, job = _open(lineage, job_id, conditions)
    if job.status == "queued":
        draft.change_job(job_id, status="running")
        draft.add_event(job_id, "started", "Training started.")
    return draft.done()


def report_job(
    lineage: Lineage, job_id: str, type_: EventType, message: str, conditions: Conditions
) -> LineageChange:
    """Add an event to a running fine-tune; any other gets none."""
    draft, job = _open(lineage, job_id, conditions)
    if job.status == "running":
        draft.add_event(job_id, type_, message)
    return draft.done()


def cancel_job(lineage: Lineage, job_id: str, conditions: Conditions) -> LineageChange:
    """Cancel a fine-tune: one that is queued at once, one that runs when its trainer stops."""
    draft, job = _open(lineage, job_id, conditions)
    if job.is_active:
        request_cancel(draft, job_id, "It was cancelled.")
    return draft.done()


def request_cancel(draft: LineageDraft, job_id: str, why: str) -> None:
    """Cancel a fine-tune that has not ended, in a draft; asked again, nothing changes."""
    job = draft.lineage.jobs[job_id]
    if job.status == "queued":
        draft.effects.append(CancelFineTune(job_id))
        _end_cancelled(draft, job_id, why)
    elif job.status == "running":
        draft.effects.append(CancelFineTune(job_id))
        draft.change_job(job_id, status="cancelling", reason=why)
        draft.add_event(job_id, "cancelling", f"{why} The trainer is stopping.")


def stop_job(lineage: Lineage, job_id: str, conditions: Conditions) -> LineageChange:
    """Mark a fine-tune being cancelled as stopped; any other stays."""
    draft, job = _open(lineage, job_id, conditions)
    if job.status == "cancelling":
        _end_cancelled(draft, job_id, job.reason or "It was cancelled.")
    return draft.done()


def fail_job(
    lineage: Lineage, job_id: str, error: JobError, conditions: Conditions
) -> LineageChange:
    """Mark a fine-tune as failed; one that has ended stays as it ended."""
    draft, job = _open(lineage, job_id, conditions)
    if job.is_active:
        reason = error.message.splitlines()[0] if error.message else error.code
        draft.change_job(job_id, status="failed", outcome="failed", error=error, reason=reason)
        _charge(draft, job_id, 0)
        draft.add_event(job_id, "failed", reason)
    return draft.done()


def finish_job(
    lineage: Lineage,
    job_id: str,
    gate: Gate,
    heldout: dict[str, float],
    conditions: Conditions,
    *,
    reason: str | None = None,
    next_id: str = "",
) -> LineageChange:
    """Mark a fine-tune as trained and judged: its model joins where the gate passed it.

    One that is being cancelled is cancelled, and one that has ended stays as it ended. ``next_id`` is
    of the fine-tune that is queued after one whose model answers first.
    """
    draft, job = _open(lineage, job_id, conditions)
    if job.status == "cancelling":
        return stop_job(lineage, job_id, conditions)
    if job.status != "running":
        return draft.done()
    if gate.passed:
        _join(draft, job, gate, heldout)
    else:
        why = reason or "; ".join(gate.reasons) or "The gate did not pass it."
        draft.change_job(job_id, status="succeeded", outcome="gate_failed", gate=gate, reason=why)
        draft.add_event(job_id, "gate_failed", f"The gate did not pass it: {why}")
    if job.rest is not UNSET:
        _queue_rest(draft, job, job.rest, next_id)
    else:
        _charge(draft, job_id, job.price_nano)
        draft.add_event(job_id, "succeeded", "The fine-tune ended.")
    return draft.done()


def _open(lineage: Lineage, job_id: str, conditions: Conditions) -> tuple[LineageDraft, FineTune]:
    job = lineage.jobs.get(job_id)
    if job is None:
        raise errors.NotFoundError(
            f"There is no fine-tune {job_id[:60]!r}; see GET /v1/fine-tuning/jobs."
        )
    return LineageDraft(lineage, conditions), job


def _queue(
    draft: LineageDraft,
    family: TunedFamily,
    parent: str | None,
    order: Order,
    max_price_usd: str | None,
) -> None:
    if active_job(draft.lineage, family) is not None:
        raise errors.FamilyTrainingError(
            f"A fine-tune of {family.name} has not ended; wait for it."
        )
    check_price(order.price_nano, max_price_usd, "The fine-tune")
    conditions = draft.conditions
    n_waiting = sum(job.status == "queued" for job in draft.lineage.jobs.values())
    if n_waiting >= conditions.account_queue:
        raise errors.TenantQueueFullError(
            f"{n_waiting} fine-tunes of the account wait already; try again when one has started."
        )
    if conditions.queue_room < 1:
        raise errors.QueueFullError("The queue of fine-tunes is full; try again later.")
    draft.hold(order.id, order.price_nano, "The fine-tune")
    plan = order.plan
    charge: Charge = "reserved" if order.price_nano else "free"
    trained = plan.hyperparameters
    rest: ResolvedHyperparameters | UnsetType = UNSET
    if trained.first is not UNSET:
        rest = structs.replace(trained, first=UNSET)
        trained = structs.replace(trained, heads=trained.first, lora_rank=0)
    job = FineTune(
        id=order.id,
        family=family.name,
        dataset_id=plan.dataset_id,
        dataset_version=plan.dataset_version,
        method=plan.method,
        base=plan.base,
        parent=parent,
        hyperparameters=trained,
        rest=rest,
        split=plan.split,
        lineage=plan.lineage,
        max_questions=MAX_DECISIONS,
        price_nano=order.price_nano,
        charge=charge,
        created_at=draft.now,
        updated_at=draft.now,
    )
    _put(draft, job, f"A fine-tune of {family.name} is queued.")


def _queue_rest(
    draft: LineageDraft, first: FineTune, rest: ResolvedHyperparameters, job_id: str
) -> None:
    """Queue the fine-tune that was asked for, after the one whose model answers first.

    It is on the same rows, and the fee that is held is its own; no bound of the queue counts it.
    """
    ended = draft.change_job(first.id, price_nano=0, charge="free")
    draft.add_event(first.id, "succeeded", f"The fine-tune ended; {job_id} follows it.")
    job = structs.replace(
        first,
        id=job_id,
        parent=ended.output_model,
        hyperparameters=rest,
        rest=UNSET,
        follows=first.id,
        status="queued",
        n_events=0,
        created_at=draft.now,
        updated_at=draft.now,
    )
    _put(draft, job, f"A fine-tune of {job.family} is queued; it follows {first.id}.")


def _put(draft: LineageDraft, job: FineTune, message: str) -> None:
    """Put a fine-tune into the queue."""
    draft.put_job(job)
    family = draft.lineage.families[job.family]
    draft.change_family(family.name, jobs=(*family.jobs, job.id))
    draft.effects.append(QueueJob(job.id))
    draft.add_event(job.id, "queued", message)


def model_of(
    job: FineTune, version: int, gate: Gate, heldout: dict[str, float], at: float
) -> FamilyModel:
    """Return the model that a fine-tune has made."""
    return FamilyModel(
        adapter=adapter_of(job.id),
        family=job.family,
        version=version,
        job_id=job.id,
        base=job.base,
        parent=job.parent,
        created_at=at,
        gate=gate,
        heldout=heldout,
    )


def _join(draft: LineageDraft, job: FineTune, gate: Gate, heldout: dict[str, float]) -> None:
    family = draft.lineage.families[job.family]
    model = model_of(job, len(family.models) + 1, gate, heldout, draft.now)
    draft.put_model(model)
    draft.change_family(family.name, models=(*family.models, model.adapter))
    draft.change_job(
        job.id, status="succeeded", outcome="joined", gate=gate, output_model=model.adapter
    )
    draft.add_event(job.id, "gate_passed", "The gate passed it.")
    draft.add_event(job.id, "joined", f"Its model joined {family.name} as {model.ref}.")


def _end_cancelled(draft: LineageDraft, job_id: str, why: str) -> None:
    draft.change_job(job_id, status="cancelled", outcome="cancelled", reason=why)
    _charge(draft, job_id, 0)
    draft.add_event(job_id, "cancelled", why)


def _charge(draft: LineageDraft, job_id: str, amount_nano: int) -> None:
    job = draft.lineage.jobs[job_id]
    if job.charge == "reserved":
        draft.change_job(job_id, charge="charged" if amount_nano else "released")
        # The fee of a fine-tune that follows another is on hold under that one's id.
        draft.settle(job_id if job.follows is UNSET else job.follows, job.price_nano, amount_nano)
