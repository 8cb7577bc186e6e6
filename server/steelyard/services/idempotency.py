"""Idempotency keys: their form, what a key in use answers, and writes that happen once per key."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Connection

from steelyard.errors import (
    IdempotencyConflictError,
    IdempotencyResponseExpiredError,
    InvalidRequestError,
    Operation,
    SteelyardError,
    Violation,
    error_from_body,
)
from steelyard.services.caller import Caller
from steelyard.services.reply import Reply
from steelyard.storage.state import State
from steelyard.storage.state import operations as rows

SECONDS_A_DAY = 86_400.0
#: Days for which a key is remembered.
KEEP_DAYS = 30.0
#: Rows that one sweeping transaction touches, so that requests wait little for it.
AT_ONCE = 500
_MAX_KEY = 255


class KeyedWrites:
    """Runs a write once for each idempotency key and replays its answer after.

    Parameters
    ----------
    state : steelyard.storage.state.State
        Where it writes.
    keep_days : float
        Days for which a key is remembered.
    now : callable, optional
        Unix seconds.
    """

    def __init__(
        self,
        state: State,
        *,
        keep_days: float = KEEP_DAYS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._keep_s = keep_days * SECONDS_A_DAY
        self._now = now

    async def run(
        self,
        caller: Caller,
        *,
        route: str,
        key: str | None,
        payload_sha256: str,
        window_s: float = 3600.0,
        work: Callable[[Connection], bytes],
    ) -> Reply:
        """Run a write in one transaction with the record of its key, or replay it.

        Parameters
        ----------
        caller : Caller
            Whose key it is.
        route : str
            The route under which the key is kept, such as ``POST /v1/feedback``.
        key : str or None
            The idempotency key; without one the write just runs.
        payload_sha256 : str
            Of the decoded payload; the key's other uses must have the same.
        window_s : float, default 3600
            Seconds for which the answer is replayed.
        work : callable
            Takes the connection, writes, and gives the answer as JSON. It must touch only the
            database. An exception of it undoes the write, leaves the key free and is raised here.

        Raises
        ------
        steelyard.errors.IdempotencyConflictError
            When the key was used with another payload.
        steelyard.errors.IdempotencyResponseExpiredError
            When the key's answer is no longer kept.
        steelyard.errors.StorageUnavailableError
            When the state cannot be written.
        """
        if key is None:
            return Reply(await self._state.write(work))
        wanted = rows.KeyRow(
            account_id=caller.account_id,
            route=route,
            key=key,
            payload_sha256=payload_sha256,
            state="succeeded",
            operation_id=None,
            body=None,
            replay_until=self._now() + window_s,
            forget_at=self._now() + max(window_s, self._keep_s),
        )
        return await self._state.write(functools.partial(self._run_rows, wanted, work))

    async def find(
        self, caller: Caller, *, route: str, key: str | None, payload_sha256: str
    ) -> Reply | None:
        """Give the answer that a key has already, before work is done that ``run`` would only drop.

        Parameters
        ----------
        caller, route, key, payload_sha256
            As for ``run``.

        Returns
        -------
        Reply or None
            ``None`` when the write has not been done; another may be doing it.

        Raises
        ------
        steelyard.errors.IdempotencyConflictError
            When the key was used with another payload.
        steelyard.errors.IdempotencyResponseExpiredError
            When the key's answer is no longer kept.
        """
        if key is None:
            return None
        found = await self._state.read(
            lambda connection: rows.find_key(connection, caller.account_id, route, key)
        )
        now = self._now()
        return None if found is None else self._answer(found, payload_sha256, now)

    def _run_rows(
        self, wanted: rows.KeyRow, work: Callable[[Connection], bytes], connection: Connection
    ) -> Reply:
        now = self._now()
        found = rows.find_key(connection, wanted.account_id, wanted.route, wanted.key)
        if found is not None:
            answer = self._answer(found, wanted.payload_sha256, now)
            if answer is not None:
                return answer
            rows.delete_key(connection, wanted.account_id, wanted.route, wanted.key)
        body = work(connection)
        rows.insert_key(connection, dataclasses.replace(wanted, body=body))
        return Reply(body)

    @staticmethod
    def _answer(found: rows.KeyRow, payload_sha256: str, now: float) -> Reply | None:
        """Give the answer of a key in use; ``None`` when it is to be forgotten."""
        if found.forget_at <= now:
            return None
        if found.payload_sha256 != payload_sha256:
            raise conflict()
        answer = replay(found, now)
        if isinstance(answer, SteelyardError):
            raise answer
        return answer


def check_idempotency_key(value: str | None) -> str | None:
    """Give the value of an ``Idempotency-Key`` header, or ``None`` where there is none.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When it is not 1 to 255 visible ASCII characters.

    Examples
    --------
    >>> check_idempotency_key("order-118"), check_idempotency_key(None)
    ('order-118', None)
    """
    if value is None:
        return None
    if 1 <= len(value) <= _MAX_KEY and all("!" <= letter <= "~" for letter in value):
        return value
    raise InvalidRequestError(
        violations=[
            Violation(
                ("header", "Idempotency-Key"),
                "Idempotency-Key is not 1 to 255 visible ASCII characters without spaces; a UUID "
                "is a good key.",
                "invalid_key",
            )
        ]
    )


def payload_sha256(value: Any) -> str:
    """Give the hash of a decoded payload, the same however its JSON was spelled.

    Parameters
    ----------
    value : object
        Of JSON's types; structs count as objects.

    Returns
    -------
    str
        SHA-256 in lower-case hex.

    Examples
    --------
    >>> payload_sha256({"a": 1, "b": [2]}) == payload_sha256({"b": [2], "a": 1})
    True
    """
    text = json.dumps(
        value, default=msgspec.to_builtins, sort_keys=True, separators=(",", ":"), ensure_ascii=True
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def conflict() -> IdempotencyConflictError:
    """Give the refusal of a key that was used with another payload."""
    return IdempotencyConflictError(
        "This Idempotency-Key was used with another request; send a new key with this one."
    )


def replay(found: rows.KeyRow, now: float) -> Reply | SteelyardError:
    """Give the answer of a key that succeeded, or the error once its time is over."""
    if found.body is None or (found.replay_until is not None and found.replay_until <= now):
        return IdempotencyResponseExpiredError(
            "The request with this Idempotency-Key succeeded, and its answer is no longer kept; "
            "it is not run again. Send a new key to run it again."
        )
    return Reply(found.body, operation_id=found.operation_id, is_replay=True)


def write_failure(error: SteelyardError) -> bytes:
    """Give a failure in the form in which a key keeps it."""
    return msgspec.json.encode(
        {
            "status": error.status,
            "body": error.body(),
            "retry_after_s": error.retry_after_s,
        }
    )


def read_failure(found: rows.KeyRow) -> SteelyardError:
    """Give the failure that a key keeps, marked as terminal."""
    kept = msgspec.json.decode(found.body or b"{}")
    error = error_from_body(
        kept.get("status", 500), kept.get("body"), retry_after_s=kept.get("retry_after_s")
    )
    if found.operation_id is not None:
        error.operation = Operation(found.operation_id, "terminal")
    return error
