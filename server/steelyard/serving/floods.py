"""Accounts that send more than the engines answer: refused from the head of a request alone.

An account is in a flood from a refusal of a queue until the queue has room for it again. Each refusal
asks for a longer wait than the one before, so that many clients that obey do not all come back at
once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from steelyard.errors import EngineUnavailableError

#: Bounds of the wait that is asked for, in seconds.
LEAST_S, MOST_S = 1.0, 20.0
#: Refusals for which the wait grows by its first length, and seconds in which they are forgotten.
_GROWS_BY, _FORGETS_IN_S = 20.0, 10.0
#: Accounts that are remembered; the oldest flood goes for a new one.
_MOST_FLOODS = 1_000


@dataclass(slots=True)
class _Flood:
    check: Callable[[], None]
    level: float = 0.0
    at: float = -math.inf


class Floods:
    """The floods of one server process, by account; for one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: Those that last; a request of any other account goes on.
        self.by_account: dict[str, _Flood] = {}

    def note(
        self, account: str, refusal: EngineUnavailableError, check: Callable[[], None]
    ) -> None:
        """Lengthen the wait that a refusal asks for; ``check`` raises as long as there is no room."""
        flood = self.by_account.pop(account, None) or _Flood(check)
        while len(self.by_account) >= _MOST_FLOODS:
            self.by_account.pop(next(iter(self.by_account)))
        self.by_account[account] = flood
        flood.check = check
        self._lengthen(flood, refusal)

    def check(self, account: str) -> None:
        """Refuse a request of an account whose last one found no room, while there is none."""
        flood = self.by_account.get(account)
        if flood is None:
            return
        try:
            flood.check()
        except EngineUnavailableError as refusal:
            self._lengthen(flood, refusal)
            raise
        if self._level_of(flood) < 1:
            del self.by_account[account]

    def _lengthen(self, flood: _Flood, refusal: EngineUnavailableError) -> None:
        flood.level, flood.at = self._level_of(flood) + 1, self._clock()
        wait_s = max(refusal.retry_after_s or 0.0, LEAST_S) * (1 + flood.level / _GROWS_BY)
        refusal.retry_after_s = round(min(wait_s, MOST_S), 1)

    def _level_of(self, flood: _Flood) -> float:
        """Return the refusals of late, the older ones counting less."""
        return flood.level * math.exp((flood.at - self._clock()) / _FORGETS_IN_S)
