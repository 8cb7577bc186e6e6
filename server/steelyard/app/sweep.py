"""Remove expired decisions and texts of them, old keys and abandoned operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import sqlalchemy as sa

from steelyard.decision_log.store import delete_decisions_before, withhold_before
from steelyard.jobs.ticker import Ticker
from steelyard.operations.service import OperationLog
from steelyard.storage import State

_HOUR_S = 3600.0
_SECONDS_A_DAY = 86_400.0
#: Rows of one transaction, so that requests wait little for it: a text is read and written again.
_AT_ONCE, _TEXTS_AT_ONCE = 500, 200


class _Batch(Protocol):
    def __call__(self, connection: sa.Connection, before: float, *, limit: int) -> int: ...


class Sweeper(Ticker):
    """Sweeps at the start and every hour after, on a thread of its own; 0 ``text_days`` keep texts."""

    def __init__(
        self,
        state: State,
        operations: OperationLog,
        *,
        retention_days: float,
        text_days: float = 0.0,
        further: Sequence[Callable[[], object]] = (),
        interval_s: float = _HOUR_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._operations = operations
        self._retention_s = retention_days * _SECONDS_A_DAY
        self._text_s = text_days * _SECONDS_A_DAY
        self._further = tuple(further)
        self._now = now
        super().__init__(
            self.sweep,
            name="steelyard-sweep",
            failure="Could not sweep the state",
            explain=state.explain,
            interval_s=interval_s,
        )

    def sweep(self) -> None:
        """Clear away everything that is over now."""
        self._operations.sweep()
        self._in_batches(delete_decisions_before, self._retention_s, _AT_ONCE)
        if self._text_s:
            self._in_batches(withhold_before, self._text_s, _TEXTS_AT_ONCE)
        for sweep in self._further:
            if not self._stopping.is_set():
                sweep()

    def _in_batches(self, batch: _Batch, age_s: float, limit: int) -> None:
        before = self._now() - age_s
        n_done = limit
        while n_done == limit and not self._stopping.is_set():
            n_done = self._state.write_now(partial(batch, before=before, limit=limit))
