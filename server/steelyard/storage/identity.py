"""Whether the file of a state is still the one that was opened: it may be removed or replaced."""

from __future__ import annotations

import time
from pathlib import Path

from steelyard.errors import StorageUnavailableError

#: Seconds for which a check of a reader holds.
_HOLDS_S = 1.0


class StateFile:
    """The file and the write-ahead log of an open SQLite state.

    An unlinked file takes writes as ever, and nobody will find them again: a write is durable only
    where the path still leads to what was written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_path = path.with_name(f"{path.name}-wal")
        self._file = _identity(path)
        self._log: tuple[int, int] | None = None
        self._checked_at = time.monotonic()

    def check(self) -> None:
        """Raise ``StorageUnavailableError`` unless the path leads to the file that was opened."""
        if _identity(self._path) != self._file:
            raise StorageUnavailableError(
                "The state's file was removed or replaced while the server ran; stop the server, put "
                "the file back, and start it again."
            )
        self._checked_at = time.monotonic()

    def check_now_and_then(self) -> None:
        """Check as ``check`` does, at most once a second."""
        if time.monotonic() - self._checked_at > _HOLDS_S:
            self.check()

    def forget_log(self) -> None:
        """Expect whatever log a new connection finds or makes."""
        self._log = None

    def check_written(self) -> None:
        """Check after a commit, the log too: that is where it went."""
        self.check()
        log = _identity(self._log_path)
        if log is None or log != (self._log or log):
            raise StorageUnavailableError(
                f"{self._log_path.name} was removed or replaced while the server ran, and with it the "
                "latest writes; stop the server, check the state with `steelyard doctor`, and start it "
                "again."
            )
        self._log = log


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
