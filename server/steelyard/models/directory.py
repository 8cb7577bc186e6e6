"""Descriptions of tuned models: in full, beside their base models."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from msgspec import UNSET, UnsetType
from sqlalchemy import Connection

from steelyard.datasets.store import DatasetRow, find_dataset
from steelyard.families.fine_tune_wire import JobMetrics
from steelyard.families.lineage.lineage import Conditions, FamilyModel, Lineage
from steelyard.families.serializers import model_to_wire
from steelyard.families.store import StoredLineage
from steelyard.families.tuned import lacks_reader, price_of, tuned_evaluation_key
from steelyard.models import wire
from steelyard.serving.registry import HostedModel, ModelRegistry


class TunedDirectory:
    """The tuned models of an account."""

    def __init__(self, bases: ModelRegistry) -> None:
        self._bases = bases

    def tell(
        self,
        stored: StoredLineage,
        model: FamilyModel,
        conditions: Conditions,
        datasets: Mapping[str, DatasetRow],
    ) -> wire.Model:
        """Return a model in wire form, whatever its state."""
        base = self._bases.find(model.base)
        wire_model = model_to_wire(stored.lineage, model, conditions)
        switch = model.switch
        max_tokens = 0 if base is None else base.max_input_tokens
        state = conditions.state_of(model.adapter)
        is_whole = base is not None and not lacks_reader(model, self._bases.find)
        reason = _unavailable(model, base if is_whole else None, state)
        return wire.Model(
            id=model.ref,
            name=model.ref,
            status=model.status if reason is None else "unavailable",
            description=f"Number {model.version} of the family {model.family}, tuned from "
            f"{model.base}.",
            evaluation_key=self._evaluation_key(stored, model, base),
            decision_price_nano=(
                None if base is None else str(price_of(model, base, self._bases.find))
            ),
            family=model.base,
            lora=model.adapter,
            created_at=model.created_at,
            max_input_tokens=max_tokens,
            max_prompt_tokens=max_tokens,
            max_questions=stored.lineage.jobs[model.job_id].max_questions,
            calibration="held_out",
            engine="" if base is None else base.engine,
            release_date=dt.datetime.fromtimestamp(model.created_at, dt.UTC).date().isoformat(),
            base=model.base,
            job_id=model.job_id,
            model_name=model.family,
            version=model.version,
            parent=model.parent,
            state=state,
            availability_reason=reason or UNSET,
            metrics=JobMetrics(gate=model.gate),
            heldout=model.heldout,
            evaluation_set=_evaluation_set(stored.lineage, model, datasets),
            deleted_at=_or_unset(model.deleted_at),
            discarded_at=_or_unset(model.discarded_at),
            on_at=switch.on_at,
            used_at=model.switch.used_at,
            switches_off_at=getattr(wire_model, "switches_off_at", None),
            off_reason=switch.off_reason,
            off_at=switch.off_at,
            keep_warm=model.keep_warm,
            keep_warm_window=getattr(wire_model, "keep_warm_window", None),
            keep_warm_stopped_at=model.keep_warm_stopped_at,
        )

    def readiness(
        self, name: str, model: FamilyModel, conditions: Conditions
    ) -> wire.ModelReadiness:
        """Return whether a call that means a model would be answered now; nothing is loaded."""
        base = self._bases.find(model.base)
        state = conditions.state_of(model.adapter)
        if base is None or state == "failed":
            return wire.ModelReadiness(model=name, ready=False, reason="no_adapter_engine")
        if state != "loaded":
            return wire.ModelReadiness(model=name, ready=False, reason="model_not_ready")
        if base.hangs or base.is_away:
            return wire.ModelReadiness(model=name, ready=False, reason="engine_unavailable")
        return wire.ModelReadiness(model=name, ready=True)

    @staticmethod
    def _evaluation_key(stored: StoredLineage, model: FamilyModel, base: HostedModel | None) -> str:
        sha256 = stored.artifacts.get(model.adapter, "")
        return tuned_evaluation_key(sha256, "" if base is None else base.evaluation_key)


def datasets_of(
    connection: Connection, account_id: str, lineage: Lineage, models: Collection[FamilyModel]
) -> dict[str, DatasetRow]:
    """Return the datasets that some models were trained on, by id."""
    dataset_ids = {lineage.jobs[model.job_id].dataset_id for model in models}
    by_id = {
        dataset_id: find_dataset(connection, account_id, dataset_id)
        for dataset_id in sorted(dataset_ids)
    }
    return {dataset_id: row for dataset_id, row in by_id.items() if row is not None}


def _unavailable(
    model: FamilyModel, base: HostedModel | None, state: str
) -> wire.AvailabilityReason | None:
    if model.status != "ready":
        return None
    if base is None:
        return "engine_unconfigured"
    if state == "failed":
        return "no_engine"
    return "engine_unavailable" if base.hangs or base.is_away else None


def _evaluation_set(
    lineage: Lineage, model: FamilyModel, datasets: Mapping[str, DatasetRow]
) -> wire.EvaluationSet:
    job = lineage.jobs[model.job_id]
    row = datasets.get(job.dataset_id)
    is_deleted = row is None or row.deleted_at is not None
    return wire.EvaluationSet(
        dataset=wire.EvaluatedDataset(
            id=job.dataset_id,
            name=None if row is None or is_deleted else row.name,
            archived_at=None if row is None else row.archived_at,
            deleted=is_deleted,
        ),
        training_examples=job.split.train_rows,
        validation_examples=job.split.validation_rows,
        earlier_examples=None if job.lineage is None else job.lineage.earlier_training,
    )


def _or_unset(at: float | None) -> float | UnsetType:
    return UNSET if at is None else at
