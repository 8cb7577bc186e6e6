"""Idempotency keys: the answer to a repeated key, and writes that happen once per key."""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from sqlalchemy import Connection

from steelyard import errors
from steelyard.operations import store as rows
from steelyard.operations.write import Replay, Write
from steelyard.storage import State

Answer = TypeVar("Answer")

SECONDS_A_DAY = 86_400.0
#: Seconds for which a key is remembered.
KEEP_S = 30 * SECONDS_A_DAY
#: Rows that one sweeping transaction touches, so that requests wait little for it.
AT_ONCE = 500


class KeyedWrites:
    """Runs a write once for each idempotency key and replays its answer after."""

    def __init__(self, state: State, *, now: Callable[[], float] = time.time) -> None:
        self._state = state
        self._now = now

    async def once(
        self, write: Write, work: Callable[[Connection], Answer], *, window_s: float | None = 3600.0
    ) -> Answer:
        """Run a write in one transaction with the record of its key, or raise ``Replay``.

        Without a window the answer is not kept, as it has a secret: a repeated call is refused.
        """
        if write.key is None:
            return await self._state.write(work)
        outcome = await self._state.write(functools.partial(self._once, write, work, window_s))
        if isinstance(outcome, Replay | errors.SteelyardError):
            raise outcome
        return outcome

    async def answer_once(self, write: Write, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Await what may be done twice without harm, or raise ``Replay`` where its key has an answer."""
        if write.key is None:
            return await work()
        await self.replay_known(write)
        answer = await work()
        return await self.once(write, lambda _: answer)

    async def replay_known(self, write: Write) -> rows.KeyRow | None:
        """Raise ``Replay`` for a key with an answer; return one whose operation runs, ``None`` when free."""
        key = write.key
        if key is None:
            return None
        key_row = await self._state.read(
            lambda connection: rows.find_key(connection, write.caller.account_id, write.route, key)
        )
        now = self._now()
        if key_row is None or key_row.forget_at <= now:
            return None
        answer = answer_of(key_row, write.digest, now)
        if answer is not None:
            raise answer
        return key_row

    def _once(
        self,
        write: Write,
        work: Callable[[Connection], Answer],
        window_s: float | None,
        connection: Connection,
    ) -> Answer | Replay | errors.SteelyardError:
        # A key's answer is returned, not raised: that would undo other writes beside this one.
        now = self._now()
        account_id, key = write.caller.account_id, write.key or ""
        stored = rows.find_key(connection, account_id, write.route, key)
        if stored is not None:
            known = answer_of(stored, write.digest, now) if stored.forget_at > now else None
            if known is not None:
                return known
            rows.delete_key(connection, account_id, write.route, key)
        answer = work(connection)
        key_row = rows.KeyRow(
            account_id=account_id,
            route=write.route,
            key=key,
            payload_sha256=write.digest,
            state="succeeded",
            operation_id=None,
            body=None if window_s is None else write.encode(answer),
            replay_until=None if window_s is None else now + window_s,
            forget_at=now + max(window_s or 0.0, KEEP_S),
        )
        rows.insert_key(connection, key_row)
        return answer


def answer_of(
    key_row: rows.KeyRow, digest: str, now: float
) -> Replay | errors.SteelyardError | None:
    """Return the answer to a repeated key; ``None`` while its operation runs."""
    if key_row.payload_sha256 != digest:
        return errors.IdempotencyConflictError(
            "This Idempotency-Key was used with another request; send a new key with this one."
        )
    if key_row.state == "pending":
        return None
    if key_row.state == "failed":
        return read_failure(key_row)
    if key_row.body is None or (key_row.replay_until is not None and key_row.replay_until <= now):
        return errors.IdempotencyResponseExpiredError(
            "The request with this Idempotency-Key succeeded, and its answer is no longer kept; "
            "it is not run again. Send a new key to run it again."
        )
    return Replay(key_row.body, key_row.operation_id)


def write_failure(error: errors.SteelyardError) -> bytes:
    """Return a failure in the form in which a key keeps it."""
    return msgspec.json.encode(
        {"status": error.status, "body": error.body(), "retry_after_s": error.retry_after_s}
    )


def read_failure(key_row: rows.KeyRow) -> errors.SteelyardError:
    """Return the failure that a key keeps, marked as terminal."""
    failure = msgspec.json.decode(key_row.body or b"{}")
    error = errors.error_from_body(
        failure.get("status", 500), failure.get("body"), retry_after_s=failure.get("retry_after_s")
    )
    if key_row.operation_id is not None:
        error.operation = errors.Operation(key_row.operation_id, "terminal")
    return error
