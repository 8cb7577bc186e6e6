"""Reads and writes at the beginnings and ends of operations, which share transactions.

They run on the writer's thread; ``steelyard.operations.service`` calls them. Many operations are read
in one trip to the database and written in another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import Connection

from steelyard.errors import InsufficientCreditError, KeyCapReachedError, SteelyardError
from steelyard.ledger import books as ledger
from steelyard.ledger.books import utc_month
from steelyard.ledger.money import to_usd
from steelyard.ledger.store import Spendable, Spending, Whose, add_to_month, post
from steelyard.operations import store as rows
from steelyard.operations.idempotency import KEEP_S, SECONDS_A_DAY, answer_of, write_failure
from steelyard.operations.low_balance import publish_low_balance
from steelyard.operations.write import Replay, Write
from steelyard.storage import State
from steelyard.storage.statements import Call, Values, run_all, single_trip

#: A write of another room in the same transaction.
FurtherWrite = Callable[[Connection], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An operation that may run."""

    operation_id: str
    write: Write
    reserved_nano: int
    accepted_at: float
    model: str = ""
    is_recorded: bool = True
    input_tokens: int | None = None
    n_decisions: int | None = None
    named: str | None = None

    @property
    def whose(self) -> Whose:
        """The account and the key that pay, and the month of the cap, at its beginning and at its end."""
        caller = self.write.caller
        return Whose(caller.account_id, caller.key_id, utc_month(self.accepted_at))


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of an operation that has an answer; ``also`` is written with it."""

    accepted: Accepted
    amount_nano: int
    posting: ledger.Posting
    body: bytes
    also: FurtherWrite | None
    at: float


@dataclass(frozen=True, slots=True)
class Pending:
    """A key whose operation has not ended."""

    operation_id: str
    is_ours: bool


#: What became of a beginning; of a settlement whether its operation was pending.
Outcome: TypeAlias = "Accepted | Replay | Pending | SteelyardError | bool"


class _Round:
    """The reads and writes of operations that begin and end together."""

    def __init__(self, connection: Connection, work: Sequence[Accepted | Settlement]) -> None:
        operations = [call.accepted if isinstance(call, Settlement) else call for call in work]
        whose = list(
            dict.fromkeys(operation.whose for operation in operations if operation.reserved_nano)
        )
        calls = [_own_call(call) for call in work]
        reads = [call for call in calls if call is not None] + list(map(Spending.call, whose))
        outcomes = run_all(connection, reads) if reads else []
        for payer, outcome in zip(whose, outcomes[len(outcomes) - len(whose) :], strict=True):
            assert outcome.row is not None  # noqa: S101  it selects values
            self.spending.load(payer, outcome.row)
        own = iter(outcomes)
        self.outcomes = [None if call is None else next(own) for call in calls]
        #: Keys that change in this round: their earlier state is out of date.
        self.changing = {_key_of(call.accepted) for call in work if isinstance(call, Settlement)}
        self.operations: list[rows.OperationRow] = []
        self.keys: list[rows.KeyRow] = []
        self.endings: list[Values] = []
        self.further: list[FurtherWrite] = []
        #: What accounts that begin something had before.
        self.credits: list[tuple[Accepted, Spendable]] = []

    @functools.cached_property
    def spending(self) -> Spending:
        """The spending of accounts and keys in this round."""
        return Spending()

    def write(self, connection: Connection) -> None:
        with single_trip(connection):
            if self.operations:
                rows.insert_operation(connection, *self.operations)
            if self.keys:
                rows.insert_key(connection, *self.keys)
            if self.endings:
                rows.end_keys(connection, self.endings)
            if "spending" in vars(self):  # most requests of a server without accounts cost nothing
                self.spending.write(connection)
            for also in self.further:
                also(connection)
        for accepted, credit in self.credits:
            publish_low_balance(
                connection,
                accepted.write.caller.account_id,
                before_nano=credit.available_nano,
                after_nano=credit.available_nano - accepted.reserved_nano,
            )


def _key_of(accepted: Accepted) -> tuple[str, str, str | None]:
    return accepted.write.caller.account_id, accepted.write.route, accepted.write.key


def _own_call(call: Accepted | Settlement) -> Call | None:
    """Return the statement that a call needs an answer of."""
    if isinstance(call, Settlement):
        if not call.accepted.is_recorded:
            return None
        return rows.ending(
            call.accepted.operation_id, state="succeeded", amount_nano=call.amount_nano, at=call.at
        )
    write = call.write
    if write.key is None:
        return None
    return rows.finding_key(write.caller.account_id, write.route, write.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationWrites:
    """The writes, with their settings."""

    state: State
    running: Container[str]
    accounts_enabled: bool
    lease_s: float

    def run(self, connection: Connection, calls: Sequence[Accepted | Settlement]) -> list[Outcome]:
        """Begin and settle operations one after the other, each all or nothing."""
        outcomes: dict[int, Outcome] = {}
        left = list(enumerate(calls))
        while left:
            now = _Round(connection, [call for _, call in left])
            again = []
            for (number, call), read in zip(left, now.outcomes, strict=True):
                outcome: Outcome | None
                if isinstance(call, Settlement):
                    outcome = self._settle(now, call, is_pending=read is None or read.n_rows == 1)
                else:
                    key_row = None if read is None else rows.key_of(read.row)
                    outcome = self._accept(connection, now, call, key_row)
                if outcome is None:
                    again.append((number, call))
                else:
                    outcomes[number] = outcome
            now.write(connection)
            left = again
        return [outcomes[number] for number in range(len(calls))]

    def _accept(
        self, connection: Connection, now: _Round, accepted: Accepted, key_row: rows.KeyRow | None
    ) -> Accepted | Replay | Pending | SteelyardError | None:
        """Take the key, check credit and cap, and hold; ``None`` to look again after this round."""
        # Refusals are returned, not raised: that would undo the release of a dead operation.
        write = accepted.write
        if write.key is not None and _key_of(accepted) in now.changing:
            return None
        if key_row is not None:
            return self._meet(connection, key_row, accepted)
        credit = self._credit(now, accepted)
        refusal = self._refusal(credit, accepted)
        if refusal is not None:
            return refusal
        now.operations.append(self._row(accepted, state="pending"))
        if write.key is not None:
            now.changing.add(_key_of(accepted))
            now.keys.append(
                rows.KeyRow(
                    account_id=write.caller.account_id,
                    route=write.route,
                    key=write.key,
                    payload_sha256=write.digest,
                    state="pending",
                    operation_id=accepted.operation_id,
                    body=None,
                    replay_until=None,
                    forget_at=accepted.accepted_at + KEEP_S,
                )
            )
        if accepted.reserved_nano:
            entries = ledger.hold(accepted.reserved_nano)
            self._post(now.spending, accepted, entries, at=accepted.accepted_at)
            now.spending.count(accepted.whose, held_nano=accepted.reserved_nano)
        if credit is not None:
            now.credits.append((accepted, credit))
        return accepted

    def _meet(
        self, connection: Connection, key_row: rows.KeyRow, accepted: Accepted
    ) -> Replay | Pending | SteelyardError | None:
        """Return the answer to a repeated key; ``None`` once it is free."""
        now = accepted.accepted_at
        running: Pending | None = None
        if key_row.state == "pending":
            operation = rows.find_operation(connection, key_row.operation_id or "")
            if operation is None or not self._runs(connection, operation, now):
                if operation is not None:
                    self.release(operation.id, now, connection)
                rows.delete_key(connection, key_row.account_id, key_row.route, key_row.key)
                return None
            running = Pending(operation.id, operation.instance == self.state.instance)
        elif key_row.forget_at <= now:
            rows.delete_key(connection, key_row.account_id, key_row.route, key_row.key)
            return None
        return answer_of(key_row, accepted.write.digest, now) or running

    def _runs(self, connection: Connection, operation: rows.OperationRow, now: float) -> bool:
        if operation.state != "pending" or operation.instance is None:
            return False
        if operation.lease_until is not None and operation.lease_until <= now:
            return False
        if operation.instance == self.state.instance:
            return operation.id in self.running
        return self.state.is_alive(connection, operation.instance)

    def _credit(self, now: _Round, accepted: Accepted) -> Spendable | None:
        """Return the caller's spendable credit; ``None`` where it is not needed."""
        is_needed = self.accounts_enabled or accepted.write.caller.key_id
        if accepted.reserved_nano == 0 or not is_needed:
            return None
        return now.spending.left(accepted.whose)

    def _refusal(self, credit: Spendable | None, accepted: Accepted) -> SteelyardError | None:
        if credit is None:
            return None
        needed = accepted.reserved_nano
        if self.accounts_enabled:
            available = credit.available_nano
            if available < needed:
                return InsufficientCreditError(
                    f"The request may cost up to {to_usd(needed)} USD and the account has "
                    f"{to_usd(max(available, 0))} USD available; add credit, or send less."
                )
        left = credit.left_of_cap_nano
        if left is not None and left < needed:
            return KeyCapReachedError(
                f"The request may cost up to {to_usd(needed)} USD and the API key has "
                f"{to_usd(max(left, 0))} USD left of its cap of this month (UTC); use another "
                "key, or one with a higher cap."
            )
        return None

    def _settle(self, now: _Round, settlement: Settlement, *, is_pending: bool) -> bool:
        """Charge, free the rest of the hold and keep the answer; return whether it was pending."""
        accepted = settlement.accepted
        if not is_pending:
            return False
        if accepted.write.key is not None:
            now.endings.append(
                rows.key_ending(
                    self._row(accepted, state="succeeded"),
                    state="succeeded",
                    body=settlement.body,
                    replay_until=settlement.at + SECONDS_A_DAY,
                )
            )
        if accepted.is_recorded and accepted.reserved_nano:
            self._post(now.spending, accepted, settlement.posting, at=settlement.at)
            now.spending.count(
                accepted.whose,
                spent_nano=settlement.amount_nano,
                held_nano=-accepted.reserved_nano,
            )
        if settlement.also is not None:
            now.further.append(settlement.also)
        return True

    def release(
        self,
        operation_id: str,
        now: float,
        connection: Connection,
        *,
        error: SteelyardError | None = None,
    ) -> bool:
        """Free hold and key, or let the key keep an error; return whether it was pending."""
        operation = rows.find_operation(connection, operation_id)
        if operation is None:
            return False
        state = "released" if error is None else "failed"
        if not rows.end_operation(connection, operation_id, state=state, amount_nano=0, at=now):
            return False
        post(
            connection,
            ledger.release(operation.reserved_nano),
            operation_id=operation_id,
            account_id=operation.account_id,
            at=now,
        )
        if operation.key_id is not None:
            month = utc_month(operation.accepted_at)
            add_to_month(connection, operation.key_id, month, held_nano=-operation.reserved_nano)
        if operation.idempotency_key is None:
            return True
        if error is None:
            rows.delete_key(
                connection, operation.account_id, operation.route, operation.idempotency_key
            )
        else:
            body = write_failure(error)
            ending = rows.key_ending(operation, state="failed", body=body, replay_until=None)
            rows.end_keys(connection, [ending])
        return True

    def free_dead(self, connection: Connection, at: float) -> int:
        """Release the operations that nothing runs any more; return how many."""
        n_freed = 0
        for operation in rows.pending_operations(connection):
            if not self._runs(connection, operation, at):
                n_freed += self.release(operation.id, at, connection)
        return n_freed

    def _row(self, accepted: Accepted, *, state: str) -> rows.OperationRow:
        return rows.OperationRow(
            id=accepted.operation_id,
            account_id=accepted.write.caller.account_id,
            key_id=accepted.write.caller.key_id,
            route=accepted.write.route,
            idempotency_key=accepted.write.key,
            model=accepted.model,
            state=state,
            instance=self.state.instance,
            lease_until=accepted.accepted_at + self.lease_s,
            accepted_at=accepted.accepted_at,
            ended_at=None,
            reserved_nano=accepted.reserved_nano,
            amount_nano=0,
            input_tokens=accepted.input_tokens,
            n_decisions=accepted.n_decisions,
            named=accepted.named,
        )

    @staticmethod
    def _post(
        spending: Spending, accepted: Accepted, posting: ledger.Posting, *, at: float
    ) -> None:
        spending.post(
            posting,
            operation_id=accepted.operation_id,
            account_id=accepted.write.caller.account_id,
            at=at,
        )
