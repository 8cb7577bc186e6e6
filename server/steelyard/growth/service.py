"""Growths of named decisions: set, read, stopped, and turned every five minutes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard.caller import Caller
from steelyard.errors import InvalidReferenceError, NotFoundError, SteelyardError
from steelyard.families.lineage.references import check_name
from steelyard.growth import store as rows
from steelyard.growth.state import GrowthState, subject_of
from steelyard.growth.turning import Turn
from steelyard.growth.wire import Growth, SetGrowth
from steelyard.house import House
from steelyard.named.service import find_decision, who
from steelyard.operations.write import Write
from steelyard.outbox.publishing import publish
from steelyard.serving.registry import ModelRegistry
from steelyard.shadows.service import Shadows
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled

#: Seconds between two looks at all growths, and between two turns of one.
LOOK_S, TURN_S = 15.0, 300.0
#: Seconds after which another process may take over a claimed growth.
_CLAIM_S = 1_800.0

_decode_policy = decoder_of(SetGrowth).decode
_decode_state = decoder_of(GrowthState).decode


class Growths:
    """The growths of every account."""

    def __init__(self, house: House) -> None:
        self._state, self._writes, self._now = house.state, house.writes, house.now
        self._house = house

    async def get(self, caller: Caller, name: str) -> Growth:
        """Return the growth of a named decision."""
        return await self._state.read(
            lambda connection: _to_wire(_find(connection, caller.account_id, name))
        )

    async def put(self, write: Write, name: str, request: SetGrowth) -> Growth:
        """Set a named decision's growth policy; a running growth continues."""
        caller, now = write.caller, self._now()
        family = request.family or name.replace("_", "-")
        check_name(family, frozenset(self._house.get(ModelRegistry).names))

        def work(connection: Connection) -> Growth:
            decision = find_decision(connection, caller.account_id, name)
            if decision.dataset_id is None:
                raise InvalidReferenceError(
                    f"{name!r} has no dataset for its rows; set dataset_id with "
                    f"PATCH /v1/named-decisions/{name} first.",
                    path=("path", "named_decision"),
                )
            before = rows.find_growth(connection, decision.id)
            values = {
                "named_id": decision.id,
                "account_id": caller.account_id,
                "key_id": caller.key_id,
                "name": name,
                "policy": msgspec.json.encode(msgspec.structs.replace(request, family=family)),
                "state": msgspec.json.encode(GrowthState()) if before is None else before.state,
                "set_by": who(caller),
                "set_at": now,
                "turned_at": 0.0,
                "claimed_until": 0.0 if before is None else before.claimed_until,
            }
            rows.put_growth(connection, values)
            return _to_wire(_find(connection, caller.account_id, name))

        return await self._writes.once(write, work)

    async def stop(self, write: Write, name: str) -> Growth:
        """Stop a growth; its datasets and families stay, and its shadow ends."""
        caller, now = write.caller, self._now()

        def work(connection: Connection) -> Growth:
            row = _find(connection, caller.account_id, name)
            if row.stopped_at is None:
                rows.change_growth(connection, row.named_id, stopped_at=now)
            return _to_wire(_find(connection, caller.account_id, name))

        answer = await self._writes.once(write, work)
        await self._house.get(Shadows).end_beside(caller, subject_of(name))
        return answer

    async def turn(self, write: Write, name: str) -> Growth:
        """Take the next step of a growth, if another process does not at this moment."""
        caller = write.caller
        row = await self._state.read(lambda connection: _find(connection, caller.account_id, name))
        await self._turn(row.named_id)
        return await self.get(caller, name)

    def tick(self) -> None:
        """Turn every growth that is due."""
        now = self._now()
        for row in self._state.read_now(partial(rows.due_growths, before=now - TURN_S, now=now)):
            asyncio.run(self._turn(row.named_id))

    async def _turn(self, named_id: str) -> None:
        now = self._now()
        row = await self._state.write(
            lambda connection: rows.claim(connection, named_id, now, now + _CLAIM_S)
        )
        if row is None:
            return
        caller = Caller(row.account_id, row.key_id, "full", "growth")
        state = _decode_state(row.state)
        n_before = state.n_steps
        try:
            await Turn(self._house, caller, row.name, _decode_policy(row.policy), state, now).take()
        except SteelyardError as error:
            state.waits_for = f"It could not go on, and is tried again: {error.message}"
        finally:
            await self._state.write(partial(self._save, row, state, n_before))

    def _save(
        self, row: Row[Any], state: GrowthState, n_before: int, connection: Connection
    ) -> None:
        rows.change_growth(
            connection,
            row.named_id,
            state=msgspec.json.encode(state),
            turned_at=self._now(),
            claimed_until=0.0,
        )
        for step in reversed(state.steps[: state.n_steps - n_before]):
            data = {
                "decision": row.name,
                **msgspec.to_builtins(step),
                "estimate": msgspec.to_builtins(state.estimate),
                "comparison": msgspec.to_builtins(state.comparison),
            }
            publish(connection, row.account_id, "decision.grown", row.named_id, data)


def _find(connection: Connection, account_id: str, name: str) -> Row[Any]:
    row = rows.find_growth(connection, find_decision(connection, account_id, name).id)
    if row is None:
        raise NotFoundError(
            f"{name!r} does not grow; let it with PUT /v1/named-decisions/{name}/growth."
        )
    return row


def _to_wire(row: Row[Any]) -> Growth:
    state = _decode_state(row.state)
    return filled(
        Growth,
        state,
        decision=row.name,
        policy=_decode_policy(row.policy),
        waits_for=state.waits_for if row.stopped_at is None else "It was stopped.",
        set_by=row.set_by,
        set_at=row.set_at,
        turned_at=row.turned_at or None,
        stopped_at=row.stopped_at,
    )
