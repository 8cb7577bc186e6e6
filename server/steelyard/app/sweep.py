"""Remove expired decisions, old keys and abandoned operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from steelyard.decision_log.store import delete_decisions_before
from steelyard.jobs.ticker import Ticker
from steelyard.operations.service import OperationLog
from steelyard.storage import State

_HOUR_S = 3600.0
_SECONDS_A_DAY = 86_400.0
#: Rows removed in one transaction, so that requests wait little for it.
_AT_ONCE = 500


class Sweeper(Ticker):
    """Sweeps at the start and every hour after, on a thread of its own."""

    def __init__(
        self,
        state: State,
        operations: OperationLog,
        *,
        retention_days: float,
        further: Sequence[Callable[[], object]] = (),
        interval_s: float = _HOUR_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._operations = operations
        self._retention_s = retention_days * _SECONDS_A_DAY
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
        before = self._now() - self._retention_s
        n_removed = _AT_ONCE
        while n_removed == _AT_ONCE and not self._stopping.is_set():
            n_removed = self._state.write_now(
                lambda connection: delete_decisions_before(connection, before, limit=_AT_ONCE)
            )
        for sweep in self._further:
            if not self._stopping.is_set():
                sweep()
