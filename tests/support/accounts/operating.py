"""Operations on a real state with a clock that is set, for tests of charges and replays."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from sqlalchemy import func, select

from steelyard.accounts.service import AccountService
from steelyard.caller import Caller
from steelyard.decision_log.store import StoredDecision, insert_decision
from steelyard.errors import SteelyardError
from steelyard.ledger.store import balances_of
from steelyard.ledger.tables import balances, key_months, ledger_entries
from steelyard.operations.service import OperationLog
from steelyard.operations.tables import operations
from steelyard.operations.write import Replay, Write
from steelyard.operations.writes import Accepted
from steelyard.storage import State
from support.servers.calling import Sent

ROUTE = "POST /v1/decide"
LOCAL = Caller("local", None, "full", "127.0.0.1")
START = 1_795_000_000.0


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> float:
        return self.at


class Desk:
    """A log on a state, and short ways to use it."""

    def __init__(self, state: State, clock: Clock | None = None, **options: Any) -> None:
        self.state = state
        self.clock = clock or Clock()
        self.log = OperationLog(state, **{"accounts_enabled": False, "now": self.clock, **options})
        self.accounts = AccountService(state, accounts_enabled=True, now=self.clock)

    async def accept(
        self,
        key: str | None = None,
        *,
        reserved: int = 0,
        payload: str = "p",
        caller: Caller = LOCAL,
        route: str = ROUTE,
    ) -> Accepted | Sent:
        write = Write(caller, route, key, payload)
        try:
            return await self.log.accept(write, model="base", reserved_nano=reserved)
        except Replay as replay:
            return Sent(replay.body, replay.operation_id, is_replay=True)

    def accepted(self, key: str | None = None, **given: Any) -> Accepted:
        outcome = asyncio.run(self.accept(key, **given))
        assert isinstance(outcome, Accepted), outcome
        return outcome

    def settle(
        self,
        accepted: Accepted,
        amount: int = 0,
        body: bytes = b"{}",
        decision: StoredDecision | None = None,
    ) -> Sent:
        return asyncio.run(self.settled(accepted, amount, body, decision))

    async def settled(
        self,
        accepted: Accepted,
        amount: int = 0,
        body: bytes = b"{}",
        decision: StoredDecision | None = None,
    ) -> Sent:
        also = None if decision is None else partial(insert_decision, decision=decision)
        await self.log.settle(accepted, amount_nano=amount, body=body, also=also)
        return Sent(body, accepted.write.sent.operation_id)

    def release(self, accepted: Accepted, error: SteelyardError | None = None) -> None:
        asyncio.run(self.log.release(accepted, error))

    def replayed(self, key: str, **given: Any) -> Sent:
        outcome = asyncio.run(self.accept(key, **given))
        assert isinstance(outcome, Sent), outcome
        return outcome

    def books(self, account: str = "local") -> dict[str, int]:
        return self.state.read_now(lambda connection: balances_of(connection, account))

    def states(self) -> dict[str, str]:
        """Return every operation's state by its id."""
        query = select(operations.c.id, operations.c.state)
        return dict(self.state.read_now(lambda c: [tuple(row) for row in c.execute(query)]))

    def month(self, key_id: str) -> tuple[int, int]:
        """Return the spent and reserved amounts of a key, over all months."""
        query = select(
            func.coalesce(func.sum(key_months.c.spent_nano), 0),
            func.coalesce(func.sum(key_months.c.held_nano), 0),
        ).where(key_months.c.key_id == key_id)
        spent, held = self.state.read_now(lambda c: c.execute(query).one())
        return int(spent), int(held)

    def check_ledger(self) -> None:
        """Assert that every operation's entries sum to zero and every balance is its sum."""
        entries = ledger_entries.c

        def work(connection: Any) -> None:
            by_operation = select(entries.operation_id, func.sum(entries.amount_nano)).group_by(
                entries.operation_id
            )
            assert all(int(total) == 0 for _, total in connection.execute(by_operation))
            by_book = select(
                entries.account_id, entries.book, func.sum(entries.amount_nano)
            ).group_by(entries.account_id, entries.book)
            sums = {(a, b): int(total) for a, b, total in connection.execute(by_book)}
            kept = {
                (row.account_id, row.book): row.amount_nano
                for row in connection.execute(select(balances))
            }
            assert kept == sums

        self.state.read_now(work)
