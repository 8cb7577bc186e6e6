"""Changes of lineage that are asked for once for each key: the model that one needs is loaded first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from steelyard.caller import Caller
from steelyard.errors import (
    EngineUnavailableError,
    ModelWarmingError,
)
from steelyard.families.lineage.switching import NotLoadedError
from steelyard.families.lineage_store import Applied, Command, LineageStore
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write

#: How often a command is given again after a model was loaded for it.
_MAX_LOADS = 3
#: How long the answer of a write is kept for its key, in seconds, when nothing else is said.
SECONDS_AN_HOUR = 3600.0

Result = TypeVar("Result", bound=Struct)


class LineageWrites:
    """Applies callers' commands to the lineage of their accounts, once for each key."""

    def __init__(self, lineages: LineageStore, keyed: KeyedWrites, *, warm_wait_s: float) -> None:
        self._lineages = lineages
        self._keyed = keyed
        self._warm_wait_s = warm_wait_s

    async def replay_known(self, write: Write) -> None:
        """Raise the answer that the key of a write has already."""
        await self._keyed.replay_known(write)

    async def loading(self, caller: Caller, give: Callable[[], Awaitable[Result]]) -> Result:
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

    async def once(
        self,
        write: Write,
        command: Command,
        tell: Callable[[Connection, Applied], Result],
        *,
        window_s: float = SECONDS_AN_HOUR,
    ) -> Result:
        """Apply a command once for its key, and return the converted result."""
        written: list[Applied] = []
        caller = write.caller

        def work(connection: Connection) -> Result:
            applied = self._lineages.apply_in(
                connection, caller.account_id, command, key_id=caller.key_id
            )
            result = tell(connection, applied)
            written[:] = [applied]
            return result

        result = await self._keyed.once(write, work, window_s=window_s)
        for applied in written:
            self._lineages.follow(applied)
        return result
