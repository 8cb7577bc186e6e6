"""The transactions of an operation: reads and writes at its beginning and its end.

They run on the writer's thread; ``steelyard.operations.service`` calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from sqlalchemy import Connection

from steelyard.errors import InsufficientCreditError, KeyCapReachedError, SteelyardError
from steelyard.ledger import books as ledger
from steelyard.ledger.books import utc_month
from steelyard.ledger.money import to_usd
from steelyard.ledger.store import Spendable, add_to_month, post, spendable
from steelyard.operations import store as rows
from steelyard.operations.idempotency import KEEP_S, SECONDS_A_DAY, answer_of, write_failure
from steelyard.operations.low_balance import publish_low_balance
from steelyard.operations.write import Replay, Write
from steelyard.storage import State

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


@dataclass(frozen=True, slots=True)
class Pending:
    """A key whose operation has not ended."""

    operation_id: str
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationWrites:
    """The transactions, with their settings."""

    state: State
    running: Container[str]
    accounts_enabled: bool
    lease_s: float

    def accept(
        self, accepted: Accepted, connection: Connection
    ) -> Accepted | Replay | Pending | SteelyardError:
        """Take the key, check credit and cap, and hold: all or nothing."""
        # Refusals are returned, not raised: that would undo the release of a dead operation.
        write, caller = accepted.write, accepted.write.caller
        key = write.key
        if key is not None:
            key_row = rows.find_key(connection, caller.account_id, write.route, key)
            if key_row is not None:
                met = self._meet(connection, key_row, accepted)
                if met is not None:
                    return met
        credit = self._credit(connection, accepted)
        refusal = self._refusal(credit, accepted)
        if refusal is not None:
            return refusal
        operation = self._row(accepted, state="pending")
        rows.insert_operation(connection, operation)
        if key is not None:
            rows.insert_key(
                connection,
                rows.KeyRow(
                    account_id=caller.account_id,
                    route=write.route,
                    key=key,
                    payload_sha256=write.digest,
                    state="pending",
                    operation_id=accepted.operation_id,
                    body=None,
                    replay_until=None,
                    forget_at=accepted.accepted_at + KEEP_S,
                ),
            )
        if accepted.reserved_nano:
            entries = ledger.hold(accepted.reserved_nano)
            self._post(connection, accepted, entries, at=accepted.accepted_at)
            self._count(connection, accepted, held_nano=accepted.reserved_nano)
        if credit is not None:
            publish_low_balance(
                connection,
                caller.account_id,
                before_nano=credit.available_nano,
                after_nano=credit.available_nano - accepted.reserved_nano,
            )
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

    def _credit(self, connection: Connection, accepted: Accepted) -> Spendable | None:
        """Return the caller's spendable credit; ``None`` where it is not needed."""
        caller = accepted.write.caller
        if accepted.reserved_nano == 0 or not (self.accounts_enabled or caller.key_id):
            return None
        month = utc_month(accepted.accepted_at)
        return spendable(connection, caller.account_id, caller.key_id, month)

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

    def settle(
        self,
        accepted: Accepted,
        amount_nano: int,
        posting: ledger.Posting,
        body: bytes,
        also: FurtherWrite | None,
        now: float,
        connection: Connection,
    ) -> bool:
        """Charge, free the rest of the hold and keep the answer; return whether it was pending."""
        ended = self._row(accepted, state="succeeded")
        if accepted.is_recorded:
            is_pending = rows.end_operation(
                connection,
                accepted.operation_id,
                state="succeeded",
                amount_nano=amount_nano,
                at=now,
            )
            if not is_pending:
                return False
        if accepted.write.key is not None:
            rows.end_key(
                connection,
                ended,
                state="succeeded",
                body=body,
                replay_until=now + SECONDS_A_DAY,
            )
        if accepted.is_recorded and accepted.reserved_nano:
            self._post(connection, accepted, posting, at=now)
            self._count(
                connection, accepted, spent_nano=amount_nano, held_nano=-accepted.reserved_nano
            )
        if also is not None:
            also(connection)
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
            rows.end_key(connection, operation, state="failed", body=body, replay_until=None)
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
        connection: Connection, accepted: Accepted, posting: ledger.Posting, *, at: float
    ) -> None:
        post(
            connection,
            posting,
            operation_id=accepted.operation_id,
            account_id=accepted.write.caller.account_id,
            at=at,
        )

    @staticmethod
    def _count(
        connection: Connection, accepted: Accepted, *, spent_nano: int = 0, held_nano: int = 0
    ) -> None:
        """Count towards the month in which the operation was accepted, whenever it ends."""
        key_id = accepted.write.caller.key_id
        if key_id is not None:
            month = utc_month(accepted.accepted_at)
            add_to_month(connection, key_id, month, spent_nano=spent_nano, held_nano=held_nano)
