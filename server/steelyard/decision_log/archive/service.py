"""Which days move to files, and which files are over: looked at again and again by the sweeper."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

from steelyard.decision_log.archive import store as rows
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.storage import State

#: Days that are queued at most by one look.
_MOST_QUEUED = 1_000
#: Seconds after the end of a day in which answers of it may still be stored.
_SETTLING_S = 3600.0
#: Seconds for which a file is kept after its last answer is over: a read that began before may need it.
_READING_S = 3600.0


class Archiving:
    """Queues closed days to be moved, and removes expired ones."""

    def __init__(
        self,
        state: State,
        *,
        after_days: float,
        retention_days: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._after_s = after_days * SECONDS_A_DAY
        self._retention_s = retention_days * SECONDS_A_DAY
        self._now = now

    def tick(self) -> None:
        """Forget files and days that are over, and queue the days that are due; it blocks."""
        now = self._now()
        oldest = now - self._retention_s
        self._state.write_now(partial(rows.forget_files, before=oldest - _READING_S))
        self._state.write_now(partial(rows.forget_days, before=oldest))
        if not self._after_s:
            return
        closed = now - max(self._after_s, _SETTLING_S)
        before = math.floor(closed / SECONDS_A_DAY) * SECONDS_A_DAY
        days = self._state.read_now(
            partial(rows.due_days, since=oldest, before=before, limit=_MOST_QUEUED)
        )
        self._state.write_now(partial(rows.queue_days, days=days, at=now))
