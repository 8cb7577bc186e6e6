"""Texts of stored answers go before the answers do, where a setting says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from steelyard.decision_log.store import withhold_before
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.storage import State

#: Texts of one transaction, so that requests wait little for it.
_AT_ONCE = 200


class TextRetention:
    """Takes texts of a number of days out of stored answers; 0 days keep them as long as the answers."""

    def __init__(self, state: State, *, days: float, now: Callable[[], float] = time.time) -> None:
        self._state, self._seconds, self._now = state, days * SECONDS_A_DAY, now

    def tick(self) -> None:
        """Take out what is due; it blocks."""
        if not self._seconds:
            return
        before = self._now() - self._seconds
        work = partial(withhold_before, before=before, limit=_AT_ONCE)
        while self._state.write_now(work) == _AT_ONCE:
            pass
