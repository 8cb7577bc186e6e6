"""When names were used last, so that a name in steady use is written once a second."""

from __future__ import annotations

import threading

#: Seconds between two writes of one name.
INTERVAL_S = 1.0


class LastUsed:
    """Uses of names, gathered so that few are written.

    Safe to use from several threads. Of uses within a second the first is written at once, and the
    last when the second is over: the time kept is at most that much behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: dict[tuple[str, str], float] = {}
        self._waiting: dict[tuple[str, str], float] = {}

    def note(self, account_id: str, name: str, at: float) -> bool:
        """Note a use; returns whether it is to be written now."""
        key = account_id, name
        with self._lock:
            if at - self._written.get(key, float("-inf")) < INTERVAL_S:
                self._waiting[key] = at
                return False
            self._written[key] = at
            self._waiting.pop(key, None)
            return True

    def due(self, now: float) -> list[tuple[str, str, float]]:
        """Return account, name and time of the uses that are to be written now."""
        with self._lock:
            over = {key for key, at in self._written.items() if now - at >= INTERVAL_S}
            due = [(*key, self._waiting.pop(key)) for key in list(self._waiting) if key in over]
            for key in over:
                del self._written[key]
            for account_id, name, _ in due:
                self._written[account_id, name] = now
            return due
