"""The tuned models use cases: switch, keep warm, delete, tell of and resolve models of families."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct
from sqlalchemy import Connection

from steelyard.errors import (
    InvalidReferenceError,
    ModelUnavailableError,
    NotFoundError,
)
from steelyard.families import line
from steelyard.families.deletion import delete_model
from steelyard.families.draft import Change
from steelyard.families.line import Conditions, Lines
from steelyard.families.references import (
    find_model,
    parse_reference,
    resolve_call,
)
from steelyard.families.switching import switch_model
from steelyard.families.warmth import keep_model_warm
from steelyard.services.caller import Caller
from steelyard.services.decide import unknown_model
from steelyard.services.family_writes import FamilyWrites, digest_of, read_request
from steelyard.services.idempotency import payload_sha256
from steelyard.services.lines import Applied, Command
from steelyard.services.reply import Reply
from steelyard.services.tuned_directory import datasets_of
from steelyard.storage.state.lines import StoredLines
from steelyard.wire.families import (
    DeletedModel,
    KeepModelWarm,
    SwitchModel,
)
from steelyard.wire.models import Model, ModelReadiness

SWITCH_MODEL_ROUTE = "POST /v1/models/{model}/switch"
KEEP_MODEL_WARM_ROUTE = "POST /v1/models/{model}/keep-warm"
DELETE_MODEL_ROUTE = "DELETE /v1/models/{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """The tuned model that the name of a call means.

    Parameters
    ----------
    name : str
        As the caller named it, such as ``router`` or ``router@3``.
    version : str or None
        The model's number, such as ``router@3``, where the name is a family's.
    model : line.Model
        The model.
    artifact_sha256 : str
        Names the model's folder in the store of artifacts.
    """

    name: str
    version: str | None
    model: line.Model
    artifact_sha256: str

    @property
    def adapter(self) -> str:
        """The model's identity."""
        return self.model.adapter

    @property
    def base(self) -> str:
        """Name of the base model under it."""
        return self.model.base


class FamilyModels(FamilyWrites):
    """Answers for the tuned models of every account; parameters as ``FamilyWrites`` takes them."""

    async def switch_model(
        self, caller: Caller, reference: str, payload: bytes, key: str | None
    ) -> Reply:
        """Switch a model's own switch on or off; a ``Model``.

        Parameters
        ----------
        reference : str
            Its number, such as ``router@3``.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.ModelWarmingError
            When it is still loading after the wait; nothing was switched.
        steelyard.errors.SteelyardError
            As ``steelyard.families.switching.switch_model`` raises.
        """
        request = await read_request(payload, SwitchModel)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return switch_model(
                lines,
                reference,
                conditions,
                on=request.on,
                switch_off=request.switch_off or (),
                adapter=request.adapter,
            )

        return await self._change_model(
            caller, SWITCH_MODEL_ROUTE, reference, request, key, command
        )

    async def keep_model_warm(
        self, caller: Caller, reference: str, payload: bytes, key: str | None
    ) -> Reply:
        """Keep a model loaded through its own switch, or stop; a ``Model``.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.SteelyardError
            As ``steelyard.families.warmth.keep_model_warm`` raises.
        """
        request = await read_request(payload, KeepModelWarm)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return keep_model_warm(
                lines,
                reference,
                conditions,
                enabled=request.enabled,
                max_price_usd=request.max_price_usd,
                switch_off=request.switch_off or (),
                adapter=request.adapter,
            )

        return await self._change_model(
            caller, KEEP_MODEL_WARM_ROUTE, reference, request, key, command
        )

    async def delete_model(
        self, caller: Caller, reference: str, adapter: str | None, key: str | None
    ) -> Reply:
        """Delete a model by number, for good; a ``DeletedModel``.

        Parameters
        ----------
        reference : str
            Its number, such as ``router@3``.
        adapter : str or None
            What the caller saw behind the number.

        Raises
        ------
        steelyard.errors.SteelyardError
            As ``steelyard.families.deletion.delete_model`` raises.
        """

        def command(lines: Lines, conditions: Conditions) -> Change:
            return delete_model(lines, reference, conditions, adapter=adapter)

        def tell(_: Connection, __: Applied) -> Struct:
            return DeletedModel(id=reference)

        digest = payload_sha256({"model": reference, "adapter": adapter})
        return await self._write(caller, DELETE_MODEL_ROUTE, key, digest, command, tell)

    async def models(self, caller: Caller) -> list[Model]:
        """Give every tuned model of the account, also those that are gone, by family and number."""
        stored = await self._keeper.read(caller.account_id)
        models = sorted(
            stored.lines.models.values(), key=lambda model: (model.family, model.version)
        )
        return await self._tell_models(caller, stored, models)

    async def describe_model(self, caller: Caller, reference: str) -> Model:
        """Give one tuned model, also one that is gone.

        Parameters
        ----------
        reference : str
            Its number, such as ``router@3``.

        Raises
        ------
        steelyard.errors.InvalidReferenceError
            When it names a family, or has an ``@`` and is no number.
        steelyard.errors.NotFoundError
            When there is no such model.
        """
        stored = await self._keeper.read(caller.account_id)
        if "@" not in reference and reference not in stored.lines.families:
            raise unknown_model(reference, self._bases.names)
        model = find_model(stored.lines, reference)
        return (await self._tell_models(caller, stored, [model]))[0]

    async def readiness(self, caller: Caller, reference: str) -> ModelReadiness:
        """Tell whether a call to a family or a number would be answered now; nothing is loaded.

        Raises
        ------
        steelyard.errors.SteelyardError
            As ``resolve``.
        """
        resolved = await self.resolve(caller, reference)
        return self._directory.readiness(reference, resolved.model, self._keeper.view())

    async def resolve(self, caller: Caller, name: str) -> ResolvedModel:
        """Give the model that answers a call to a family's name or a model's number.

        Parameters
        ----------
        caller : Caller
            Whose they must be.
        name : str
            No base model's.

        Raises
        ------
        steelyard.errors.NotFoundError, steelyard.errors.InvalidReferenceError
            When nothing of the account has the name, or nothing could.
        steelyard.errors.FamilyOffError, steelyard.errors.ModelOffError
            When its switch is off.
        steelyard.errors.FamilyEmptyError
            When the family serves no model yet.
        steelyard.errors.FamilyDeletedError, steelyard.errors.ModelDeletedError
            When it was deleted.
        steelyard.errors.ModelDiscardedError
            When a rollback discarded it.
        steelyard.errors.ModelUnavailableError
            When its files are gone.
        """
        try:
            parse_reference(name)
        except InvalidReferenceError:
            if "@" in name:
                raise
            raise unknown_model(name, self._bases.names) from None
        stored = await self._keeper.read(caller.account_id)
        try:
            model = resolve_call(stored.lines, name)
        except NotFoundError:
            raise unknown_model(name, self._bases.names) from None
        artifact = stored.artifacts.get(model.adapter)
        if artifact is None:
            raise ModelUnavailableError(
                f"The files of {model.ref} are not here; call another model of {model.family}."
            )
        return ResolvedModel(
            name=name,
            version=None if "@" in name else model.ref,
            model=model,
            artifact_sha256=artifact,
        )

    async def _change_model(
        self,
        caller: Caller,
        route: str,
        reference: str,
        request: Struct,
        key: str | None,
        command: Command,
    ) -> Reply:
        def tell(connection: Connection, applied: Applied) -> Struct:
            stored = applied.stored
            model = find_model(stored.lines, reference)
            datasets = datasets_of(connection, caller.account_id, stored.lines, [model])
            return self._directory.tell(stored, model, applied.conditions, datasets)

        return await self._loading(
            caller,
            lambda: self._write(caller, route, key, digest_of(reference, request), command, tell),
        )

    async def _tell_models(
        self, caller: Caller, stored: StoredLines, models: Sequence[line.Model]
    ) -> list[Model]:
        if not models:
            return []
        datasets = await self._state.read(
            functools.partial(
                datasets_of, account_id=caller.account_id, lines=stored.lines, models=models
            )
        )
        conditions = self._keeper.view()
        return [self._directory.tell(stored, model, conditions, datasets) for model in models]
