"""The tuned models use cases: switch, keep warm, delete, tell of and resolve models of families."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import Caller
from steelyard.families.lineage import references
from steelyard.families.lineage.deletion import delete_model
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.lineage import (
    AnswerBound,
    Conditions,
    FamilyModel,
    Lineage,
    base_under,
    parent_of,
)
from steelyard.families.lineage.switching import switch_model
from steelyard.families.lineage.warmth import keep_model_warm
from steelyard.families.lineage_store import Applied, Command, LineageStore
from steelyard.families.lineage_writes import LineageWrites
from steelyard.families.store import StoredLineage
from steelyard.families.wire import DeletedModel, KeepModelWarm, SwitchModel
from steelyard.models.directory import TunedDirectory, datasets_of
from steelyard.models.wire import Model, ModelReadiness
from steelyard.operations.write import Write
from steelyard.serving.refusals import unknown_model
from steelyard.serving.registry import ModelRegistry
from steelyard.storage import State


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """The tuned model that the name of a call means."""

    version: str | None
    model: FamilyModel
    artifact_sha256: str
    bound: AnswerBound | None = None
    false_alarms: float | None = None


class FamilyModels:
    """Answers for the tuned models of every account; changes lineage once per key."""

    def __init__(
        self,
        state: State,
        lineages: LineageStore,
        writes: LineageWrites,
        bases: ModelRegistry,
    ) -> None:
        self._state = state
        self._lineages = lineages
        self._writes = writes
        self._bases = bases
        self._directory = TunedDirectory(bases)

    async def switch_model(self, write: Write, reference: str, request: SwitchModel) -> Model:
        """Switch a model's own switch on or off."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return switch_model(
                lineage,
                reference,
                conditions,
                on=request.on,
                switch_off=request.switch_off or (),
                adapter=request.adapter,
            )

        return await self._change_model(write, reference, command)

    async def keep_model_warm(self, write: Write, reference: str, request: KeepModelWarm) -> Model:
        """Keep a model loaded through its own switch, or stop."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return keep_model_warm(
                lineage,
                reference,
                conditions,
                enabled=request.enabled,
                max_price_usd=request.max_price_usd,
                switch_off=request.switch_off or (),
                adapter=request.adapter,
            )

        return await self._change_model(write, reference, command)

    async def delete_model(self, write: Write, reference: str, adapter: str | None) -> DeletedModel:
        """Delete a model by number, for good."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return delete_model(lineage, reference, conditions, adapter=adapter)

        return await self._writes.once(write, command, lambda *_: DeletedModel(id=reference))

    async def models(self, caller: Caller) -> list[Model]:
        """Return every tuned model of the account, also those that are gone, by family and number."""
        stored = await self._lineages.read(caller.account_id)
        models = sorted(
            stored.lineage.models.values(), key=lambda model: (model.family, model.version)
        )
        return await self._models_to_wire(caller, stored, models)

    async def describe_model(self, caller: Caller, reference: str) -> Model:
        """Return one tuned model, also one that is gone."""
        stored = await self._lineages.read(caller.account_id)
        if "@" not in reference and reference not in stored.lineage.families:
            raise unknown_model(reference, self._bases.names)
        model = references.find_model(stored.lineage, reference)
        return (await self._models_to_wire(caller, stored, [model]))[0]

    async def readiness(self, caller: Caller, reference: str) -> ModelReadiness:
        """Return whether a call to a family or a number would be answered now; nothing is loaded."""
        resolved = await self.resolve(caller, reference)
        return self._directory.readiness(reference, resolved.model, self._lineages.view())

    async def resolve(self, caller: Caller, name: str) -> ResolvedModel:
        """Return the model that answers a call to a family's name or a model's number."""
        try:
            references.parse_reference(name)
        except errors.InvalidReferenceError:
            if "@" in name:
                raise
            raise unknown_model(name, self._bases.names) from None
        stored = await self._lineages.read(caller.account_id)
        try:
            model = references.resolve_call(stored.lineage, name)
        except errors.NotFoundError:
            raise unknown_model(name, self._bases.names) from None
        artifact = stored.artifacts.get(model.adapter)
        if artifact is None:
            raise errors.ModelUnavailableError(
                f"The files of {model.ref} are not here; call another model of {model.family}."
            )
        family = stored.lineage.families[model.family]
        bound = family.bound
        if "@" in name and bound is not None and bound.adapter != model.adapter:
            bound = None  # it is of the family's name, and a number may be another model
        return ResolvedModel(
            version=None if "@" in name else model.ref,
            model=model,
            artifact_sha256=artifact,
            bound=bound,
            false_alarms=family.false_alarms,
        )

    async def base_of(self, caller: Caller, name: str) -> str:
        """Return the base model under a family or a number, on or off."""
        lineage = (await self._lineages.read(caller.account_id)).lineage
        _, version = references.parse_reference(name)
        if version is not None:
            return references.find_model(lineage, name).base
        family = references.find_family(lineage, name)
        return base_under(lineage, family, family.served or parent_of(lineage, family))

    def note_use(self, account_id: str, name: str) -> None:
        """Move the idle clock of a family or a number that was called; returns at once."""
        self._lineages.note_use(account_id, name)

    async def _change_model(self, write: Write, reference: str, command: Command) -> Model:
        def tell(connection: Connection, applied: Applied) -> Model:
            stored = applied.stored
            model = references.find_model(stored.lineage, reference)
            datasets = datasets_of(connection, write.caller.account_id, stored.lineage, [model])
            return self._directory.tell(stored, model, applied.conditions, datasets)

        return await self._writes.loading(
            write.caller, lambda: self._writes.once(write, command, tell)
        )

    async def _models_to_wire(
        self, caller: Caller, stored: StoredLineage, models: Sequence[FamilyModel]
    ) -> list[Model]:
        if not models:
            return []
        datasets = await self._state.read(
            functools.partial(
                datasets_of, account_id=caller.account_id, lineage=stored.lineage, models=models
            )
        )
        conditions = self._lineages.view()
        return [self._directory.tell(stored, model, conditions, datasets) for model in models]
