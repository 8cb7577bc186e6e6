"""Paid work: accepted, then settled or released; each idempotency key runs once.

An operation is accepted in one transaction (the key is taken, credit and cap are looked at, the
most it may cost is held) and ends in another (charged and answered, or released). Between the two
its process may die: the operation is then found dead, by its process's lock or its lease, its hold
is freed, and its key with it. Whatever happens, the end is guarded by the operation's state, so it
is charged at most once.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from sqlalchemy import Connection

from steelyard import errors
from steelyard.ids import new_id
from steelyard.ledger import books as ledger
from steelyard.operations import store as rows
from steelyard.operations.idempotency import AT_ONCE, KEEP_S, KeyedWrites
from steelyard.operations.write import Replay, Write
from steelyard.operations.writes import (
    Accepted,
    FurtherWrite,
    OperationWrites,
    Outcome,
    Pending,
    Settlement,
)
from steelyard.storage import State
from steelyard.storage.writer import Together

_log = logging.getLogger(__name__)

#: Seconds that a repeated key waits for the request it repeats, in this process or another.
WAIT_S = 20.0
#: Seconds until the first look at one of another process, and between two looks whether that lives.
_FIRST_LOOK_S, _FIND_DEAD_S = 0.02, 2.0
#: Seconds that an answer waits to be settled before its end counts as not known.
SETTLE_S = 5.0
#: Seconds beyond a request's deadline by which its operation has surely ended.
LEASE_GRACE_S = 40.0


class OperationLog:
    """Accepts operations and ends them, in a state that several processes may share."""

    def __init__(
        self,
        state: State,
        *,
        accounts_enabled: bool,
        lease_s: float = 90.0 + LEASE_GRACE_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._keys = KeyedWrites(state, now=now)
        self._now = now
        #: Operations of this process, each with a future that ends with it.
        self._running: dict[str, Future[None]] = {}
        #: Operations whose end could not be written; freed as soon as it can.
        self._unresolved: deque[str] = deque()
        self._writes = OperationWrites(
            state=state, running=self._running, accounts_enabled=accounts_enabled, lease_s=lease_s
        )

    async def accept(
        self,
        write: Write,
        *,
        model: str,
        reserved_nano: int,
        input_tokens: int | None = None,
        n_decisions: int | None = None,
        named: str | None = None,
    ) -> Accepted:
        """Accept an operation, which must then be settled or released, or raise ``Replay``."""
        if reserved_nano < 0:
            raise ValueError("What an operation may cost is 0 or more.")
        give_up_at = time.monotonic() + WAIT_S
        self._resolve()
        while True:
            accepted = Accepted(
                operation_id=new_id("op"),
                write=write,
                reserved_nano=reserved_nano,
                accepted_at=self._now(),
                model=model,
                is_recorded=write.key is not None or reserved_nano > 0,
                input_tokens=input_tokens,
                n_decisions=n_decisions,
                named=named,
            )
            if not accepted.is_recorded:
                return accepted
            outcome = await self._begin(accepted)
            if isinstance(outcome, Accepted):
                return outcome
            if isinstance(outcome, Replay | errors.SteelyardError):
                raise outcome
            if isinstance(outcome, Pending):
                await self._wait_for(outcome, give_up_at)

    async def replay_known(self, write: Write) -> None:
        """Raise the answer that a key has, for a request that would now be refused."""
        key_row = await self._keys.replay_known(write)
        if key_row is not None and key_row.operation_id in self._running:
            raise _in_progress(key_row.operation_id)

    async def settle(
        self, accepted: Accepted, *, amount_nano: int, body: bytes, also: FurtherWrite | None = None
    ) -> None:
        """Charge an operation, free the rest of its hold and keep its answer, all or nothing."""
        posting: ledger.Posting = {}
        if accepted.reserved_nano or amount_nano:
            posting = ledger.settlement(accepted.reserved_nano, amount_nano)
        if not accepted.is_recorded and also is None:
            # It took neither key nor money and nothing is kept of it: its id is all there is.
            accepted.write.sent.operation_id = accepted.operation_id
            return
        settlement = Settlement(accepted, amount_nano, posting, body, also, self._now())
        is_settled = False
        try:
            async with asyncio.timeout(SETTLE_S):
                outcome = await self._state.write(Together(self._writes.run, settlement))
                is_settled = outcome is True
        except (errors.StorageUnavailableError, TimeoutError) as error:
            self._remember(accepted)
            if not accepted.is_recorded:
                raise _as_unavailable(error) from error
            raise _unknown_end(accepted) from error
        except BaseException:
            self._remember(accepted)
            raise
        finally:
            self._end(accepted.operation_id)
        if not is_settled:
            raise _unknown_end(accepted)
        accepted.write.sent.operation_id = accepted.operation_id

    async def release(self, accepted: Accepted, error: errors.SteelyardError | None = None) -> None:
        """End an operation without an answer and free its hold; one that has ended stays so."""
        if not accepted.is_recorded:
            return
        work = functools.partial(
            self._writes.release, accepted.operation_id, self._now(), error=error
        )
        try:
            is_released = await self._state.write(work)
        except BaseException:
            self._remember(accepted)
            raise
        finally:
            self._end(accepted.operation_id)
        if error is not None and is_released:
            error.operation = errors.Operation(accepted.operation_id, "terminal")

    def sweep(self, now: float | None = None) -> None:
        """Remove expired rows, blocking: dead operations, old answers, keys and operations."""
        at = self._now() if now is None else now
        self._resolve()
        n_freed = self._state.write_now(functools.partial(self._writes.free_dead, at=at))
        if n_freed:
            _log.warning("Freed %d operations whose process died or did not end them.", n_freed)
        for clear in (
            functools.partial(rows.drop_answers, now=at, limit=AT_ONCE),
            functools.partial(rows.forget_keys, now=at, limit=AT_ONCE),
            functools.partial(rows.delete_free_operations, before=at - KEEP_S, limit=AT_ONCE),
        ):
            while self._state.write_now(clear) == AT_ONCE:
                pass

    async def _begin(self, accepted: Accepted) -> Outcome:
        self._running[accepted.operation_id] = Future()
        try:
            # After a power cut nothing would end it: lost, it leaves key and credit as a dead one does.
            outcome = await self._state.write(Together(self._writes.run, accepted), is_synced=False)
        except BaseException:
            # It may have been written all the same, or be yet: nothing runs it.
            self._end(accepted.operation_id)
            self._remember(accepted)
            raise
        if outcome is not accepted:
            self._end(accepted.operation_id)
        return outcome

    async def _wait_for(self, pending: Pending, give_up_at: float) -> None:
        """Wait for the end of an operation, or raise that it has not ended."""
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:
            raise _in_progress(pending.operation_id)
        if not pending.is_ours:
            await self._look_for_end(pending.operation_id, min(left_s, _FIND_DEAD_S))
            return
        running = self._running.get(pending.operation_id)
        if running is None:
            return  # it has just ended
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), left_s)
        except TimeoutError:
            raise _in_progress(pending.operation_id) from None

    async def _look_for_end(self, operation_id: str, wait_s: float) -> None:
        """Wait for the end of an operation of another process, which says nothing to this one."""

        def has_ended(connection: Connection) -> bool:
            operation = rows.find_operation(connection, operation_id)
            return operation is None or operation.state != "pending"

        give_up_at, pause_s = time.monotonic() + wait_s, _FIRST_LOOK_S
        while (left_s := give_up_at - time.monotonic()) > 0:
            await asyncio.sleep(min(pause_s, left_s))
            if await self._state.look_up(has_ended):
                return
            pause_s *= 1.5

    def _end(self, operation_id: str) -> None:
        running = self._running.pop(operation_id, None)
        if running is not None:
            running.set_result(None)

    def _remember(self, accepted: Accepted) -> None:
        if accepted.is_recorded:
            self._unresolved.append(accepted.operation_id)

    def _resolve(self) -> None:
        """Queue the release of operations that could not be ended, before later writes."""
        for _ in range(len(self._unresolved)):
            operation_id = self._unresolved.popleft()
            try:
                released = self._state.submit(
                    functools.partial(self._writes.release, operation_id, self._now())
                )
            except errors.StorageUnavailableError:
                self._unresolved.append(operation_id)
                return
            released.add_done_callback(functools.partial(self._keep_unresolved, operation_id))

    def _keep_unresolved(self, operation_id: str, released: Future[bool]) -> None:
        if released.cancelled() or released.exception() is not None:
            self._unresolved.append(operation_id)


def _in_progress(operation_id: str) -> errors.RequestInProgressError:
    error = errors.RequestInProgressError(
        "The request with this Idempotency-Key has not ended; send it again after Retry-After."
    )
    error.operation = errors.Operation(operation_id, "pending")
    return error


def _unknown_end(accepted: Accepted) -> errors.SteelyardError:
    if accepted.write.key is not None:
        return _in_progress(accepted.operation_id)
    return errors.OutcomeUnknownError(
        "The request ran, and whether it was charged is not known; look at the account before "
        "sending it again, and send an Idempotency-Key with it."
    )


def _as_unavailable(error: Exception) -> errors.StorageUnavailableError:
    if isinstance(error, errors.StorageUnavailableError):
        return error
    return errors.StorageUnavailableError("The answer could not be written in time; try again.")
