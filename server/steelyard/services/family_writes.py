"""Writing a change of an account's lines once per key, and loading the model that one waits for.

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
from steelyard.errors import (
    EngineUnavailableError,
    ModelWarmingError,
)
from steelyard.families.switching import NotLoadedError
from steelyard.services.bodies import read_body
from steelyard.services.caller import Caller
from steelyard.services.idempotency import KeyedWrites, payload_sha256
from steelyard.services.lines import Applied, Command, LineKeeper
from steelyard.services.models import ModelRegistry
from steelyard.services.reply import Reply
from steelyard.services.tuned_directory import TunedDirectory
from steelyard.storage.state import State
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Violations

#: How often a command is given again after a model was loaded for it.
_MAX_LOADS = 3
#: How long the answer of a write is kept for its key, in seconds, when nothing else is said.
SECONDS_AN_HOUR = 3600.0


Body = TypeVar("Body", bound=Struct)


class FamilyWrites:
    """Writes changes of lines, one transaction each.

    Parameters
    ----------
    state, keeper, writes, bases, warm_wait_s
        As ``steelyard.services.families.FamilyService`` takes them.
    """

    def __init__(
        self,
        state: State,
        keeper: LineKeeper,
        writes: KeyedWrites,
        bases: ModelRegistry,
        *,
        warm_wait_s: float,
    ) -> None:
        self._state = state
        self._keeper = keeper
        self._writes = writes
        self._bases = bases
        self._directory = TunedDirectory(bases)
        self._warm_wait_s = warm_wait_s

    async def _loading(self, caller: Caller, give: Callable[[], Awaitable[Reply]]) -> Reply:
        """Give a command, and again once the model that it needs has loaded."""
        for _ in range(_MAX_LOADS):
            try:
                reply = await give()
            except NotLoadedError as error:
                await self._load(caller, error)
            else:
                return reply
        raise ModelWarmingError("The model is loaded and let go of again; try again in a moment.")

    async def _load(self, caller: Caller, error: NotLoadedError) -> None:
        stored = await self._keeper.read(caller.account_id)
        model, artifact = (
            stored.lines.models.get(error.adapter),
            stored.artifacts.get(error.adapter),
        )
        engines = self._keeper.engines
        if engines is None or model is None or artifact is None:
            raise error
        try:
            await engines.ensure(model, artifact, self._warm_wait_s)
        except EngineUnavailableError:
            if engines.states().get(error.adapter) != "failed":
                raise

    async def _write(
        self,
        caller: Caller,
        route: str,
        key: str | None,
        digest: str,
        command: Command,
        tell: Callable[[Connection, Applied], Struct],
        *,
        window_s: float = SECONDS_AN_HOUR,
    ) -> Reply:
        written: list[Applied] = []

        def work(connection: Connection) -> bytes:
            applied = self._keeper.apply_in(
                connection, caller.account_id, command, key_id=caller.key_id
            )
            body = msgspec.json.encode(tell(connection, applied))
            written[:] = [applied]
            return body

        reply = await self._writes.run(
            caller, route=route, key=key, payload_sha256=digest, window_s=window_s, work=work
        )
        for applied in written:
            self._keeper.follow(applied)
        return reply


async def read_request(payload: bytes, shape: type[Body]) -> Body:
    """Read a body of a command on a family or a model, a price in it too."""
    return await read_body(functools.partial(_read_now, shape=shape), payload)


def _read_now(payload: bytes, shape: type[Body]) -> Body:
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


def digest_of(name: str, request: Struct) -> str:
    """Give the hash under which a key knows a command on a name."""
    return payload_sha256({"of": name, **msgspec.to_builtins(request)})
