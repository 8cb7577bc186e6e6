"""The tuned models use cases: switch, keep warm, delete, tell of and resolve models of families."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from steelyard.caller import Caller
from steelyard.errors import (
    EngineUnavailableError,
    InvalidReferenceError,
    ModelUnavailableError,
    ModelWarmingError,
    NotFoundError,
)
from steelyard.families.directory import TunedDirectory, datasets_of
from steelyard.families.lineage.deletion import delete_model
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.lineage import (
    Conditions,
    FamilyModel,
    Lineage,
    base_under,
    parent_of,
)
from steelyard.families.lineage.references import (
    find_family,
    find_model,
    parse_reference,
    resolve_call,
)
from steelyard.families.lineage.switching import NotLoadedError, switch_model
from steelyard.families.lineage.warmth import keep_model_warm
from steelyard.families.lineage_store import Applied, Command, LineageStore
from steelyard.families.models_wire import Model, ModelReadiness
from steelyard.families.store import StoredLineage
from steelyard.families.wire import DeletedModel, KeepModelWarm, SwitchModel
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.serving.decide import unknown_model
from steelyard.serving.registry import ModelRegistry
from steelyard.storage import State

#: How often a command is given again after a model was loaded for it.
_MAX_LOADS = 3
#: How long the answer of a write is kept for its key, in seconds, when nothing else is said.
SECONDS_AN_HOUR = 3600.0

Told = TypeVar("Told", bound=Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """The tuned model that the name of a call means."""

    version: str | None
    model: FamilyModel
    artifact_sha256: str


class FamilyModels:
    """Answers for the tuned models of every account; changes lineage once per key."""

    def __init__(
        self,
        state: State,
        lineages: LineageStore,
        writes: KeyedWrites,
        bases: ModelRegistry,
        *,
        warm_wait_s: float,
    ) -> None:
        self._state = state
        self._lineages = lineages
        self._writes = writes
        self._bases = bases
        self._directory = TunedDirectory(bases)
        self._warm_wait_s = warm_wait_s

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

        return await self._write(write, command, lambda *_: DeletedModel(id=reference))

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
        model = find_model(stored.lineage, reference)
        return (await self._models_to_wire(caller, stored, [model]))[0]

    async def readiness(self, caller: Caller, reference: str) -> ModelReadiness:
        """Return whether a call to a family or a number would be answered now; nothing is loaded."""
        resolved = await self.resolve(caller, reference)
        return self._directory.readiness(reference, resolved.model, self._lineages.view())

    async def resolve(self, caller: Caller, name: str) -> ResolvedModel:
        """Return the model that answers a call to a family's name or a model's number."""
        try:
            parse_reference(name)
        except InvalidReferenceError:
            if "@" in name:
                raise
            raise unknown_model(name, self._bases.names) from None
        stored = await self._lineages.read(caller.account_id)
        try:
            model = resolve_call(stored.lineage, name)
        except NotFoundError:
            raise unknown_model(name, self._bases.names) from None
        artifact = stored.artifacts.get(model.adapter)
        if artifact is None:
            raise ModelUnavailableError(
                f"The files of {model.ref} are not here; call another model of {model.family}."
            )
        return ResolvedModel(
            version=None if "@" in name else model.ref, model=model, artifact_sha256=artifact
        )

    async def base_of(self, caller: Caller, name: str) -> str:
        """Return the base model under a family or a number, on or off."""
        lineage = (await self._lineages.read(caller.account_id)).lineage
        _, version = parse_reference(name)
        if version is not None:
            return find_model(lineage, name).base
        family = find_family(lineage, name)
        return base_under(lineage, family, family.served or parent_of(lineage, family))

    async def _loading(self, caller: Caller, give: Callable[[], Awaitable[Told]]) -> Told:
        """Run a command, and again once the model that it needs has loaded."""
        for _ in range(_MAX_LOADS):
            try:
                return await give()
            except NotLoadedError as error:
                await self._load(caller, error)
        raise ModelWarmingError("The model is loaded and let go of again; try again in a moment.")

    async def _load(self, caller: Caller, error: NotLoadedError) -> None:
        stored = await self._lineages.read(caller.account_id)
        model, artifact = (
            stored.lineage.models.get(error.adapter),
            stored.artifacts.get(error.adapter),
        )
        engines = self._lineages.engines
        if engines is None or model is None or artifact is None:
            raise error
        try:
            await engines.ensure(model, artifact, self._warm_wait_s)
        except EngineUnavailableError:
            if engines.states().get(error.adapter) != "failed":
                raise

    async def _write(
        self,
        write: Write,
        command: Command,
        tell: Callable[[Connection, Applied], Told],
        *,
        window_s: float = SECONDS_AN_HOUR,
    ) -> Told:
        written: list[Applied] = []
        caller = write.caller

        def work(connection: Connection) -> Told:
            applied = self._lineages.apply_in(
                connection, caller.account_id, command, key_id=caller.key_id
            )
            told = tell(connection, applied)
            written[:] = [applied]
            return told

        told = await self._writes.once(write, work, window_s=window_s)
        for applied in written:
            self._lineages.follow(applied)
        return told

    async def _change_model(self, write: Write, reference: str, command: Command) -> Model:
        def tell(connection: Connection, applied: Applied) -> Model:
            stored = applied.stored
            model = find_model(stored.lineage, reference)
            datasets = datasets_of(connection, write.caller.account_id, stored.lineage, [model])
            return self._directory.tell(stored, model, applied.conditions, datasets)

        return await self._loading(write.caller, lambda: self._write(write, command, tell))

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
