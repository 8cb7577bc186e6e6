"""Writing a change of an account's lineage once per key, and loading the model that one waits for.

What the commands on families and those on their models share.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from steelyard.billing.money import InvalidAmountError, from_usd
from steelyard.caller import Caller
from steelyard.errors import EngineUnavailableError, ModelWarmingError
from steelyard.families.directory import TunedDirectory
from steelyard.families.lineage_store import Applied, Command, LineageStore
from steelyard.families.switching import NotLoadedError
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.serving.registry import ModelRegistry
from steelyard.storage import State
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Violations

#: How often a command is given again after a model was loaded for it.
_MAX_LOADS = 3
#: How long the answer of a write is kept for its key, in seconds, when nothing else is said.
SECONDS_AN_HOUR = 3600.0


Body = TypeVar("Body", bound=Struct)
Told = TypeVar("Told", bound=Struct)


class FamilyWrites:
    """Writes changes of lineage, one transaction each."""

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


def priced(shape: type[Body]) -> Callable[[object], Body]:
    """Return what reads a body of a command on a family or a model that names a price."""
    return functools.partial(_read_priced, shape=shape)


def _read_priced(payload: object, shape: type[Body]) -> Body:
    found = Violations()
    fields = open_payload(payload, shape, found)
    price = fields.get("max_price_usd")
    if isinstance(price, str):
        try:
            from_usd(price)
        except InvalidAmountError as error:
            found.add((*BODY, "max_price_usd"), f"cannot be used: {error}", "invalid_amount")
    found.raise_if_any()
    return msgspec.convert(fields, shape)
