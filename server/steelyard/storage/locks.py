"""Between processes: the turn to write, which of them live, and whether the file is still theirs.

On SQLite turns and lives are files beside the database, locked with ``flock``: the kernel frees the
locks of a process that dies, however it dies. On PostgreSQL both are advisory locks, freed with the
connection that took them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from steelyard.errors import StorageUnavailableError
from steelyard.ids import new_id
from steelyard.storage.bounded import TIMEOUT_S, try_connection, turn_s
from steelyard.storage.failures import database_error

# "steelyrd" in ASCII, and two more: any other program's choice is unlikely to be the same.
WRITE_KEY = 0x7374_6565_6C79_7264
MIGRATE_KEY = WRITE_KEY + 1
COUNT_KEY = WRITE_KEY + 2

#: PostgreSQL's lock_not_available.
LOCKED = "55P03"
#: Ends who has a lock and has been silent for some seconds.
_END_IDLE = """
    SELECT pg_terminate_backend(held.pid)
    FROM pg_locks AS held JOIN pg_stat_activity AS holder USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.mode = 'ExclusiveLock'
    AND (held.classid, held.objid, held.objsubid) = (%s::bigint::oid, %s::bigint::oid, 1)
    AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND holder.wait_event = 'ClientRead'
    AND holder.state_change < clock_timestamp() - make_interval(secs => %s)
"""

#: Seconds for which a check of a reader holds.
_HOLDS_S = 1.0

_INSTANCE = re.compile(r"srv_[0-9a-z]{26}")


def new_instance() -> str:
    """Return an id for a process that opens the state."""
    return new_id("srv")


class FileLock:
    """An exclusive lock on a file that is never removed; no two holders, in or between processes."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self) -> None:
        """Wait for the lock and take it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Release it to the next waiter."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, which also lets go of the lock."""
        os.close(self._descriptor)


class FileTurns:
    """Turns of the processes that write one SQLite file; SQLite's own waiting polls and is unfair.

    Who wants to write waits in a queue of one place before the turn itself, and leaves it on
    getting the turn. A process that ends its turn thus finds the place taken by one that waits,
    and cannot overtake it.
    """

    def __init__(self, folder: Path) -> None:
        self._queue = FileLock(folder / "queue")
        self._turn = FileLock(folder / "turn")

    def wait(self) -> None:
        """Wait for the turn."""
        self._queue.acquire()
        try:
            self._turn.acquire()
        finally:
            self._queue.release()

    def done(self) -> None:
        """End the turn."""
        self._turn.release()

    def close(self) -> None:
        """Close the files."""
        self._queue.close()
        self._turn.close()


class ServerTurns:
    """Turns of the processes that write one PostgreSQL database, on however many hosts.

    Those that write one part of it apart from the rest have turns of their own, by another key.
    """

    def __init__(self, key: int = WRITE_KEY, *, timeout_s: float = TIMEOUT_S) -> None:
        self._key, self._timeout_s = key, timeout_s

    def wait(self) -> None:
        """Do nothing: the turn comes inside the transaction, and ends with it."""

    def begin(self, connection: Connection) -> None:
        """Begin a transaction and wait for the turn, in one trip; the driver begins none itself."""
        try_connection(connection)
        driver: Any = connection.connection.dbapi_connection
        give_up_at = time.monotonic() + self._timeout_s
        while True:
            try:
                driver.execute(f"BEGIN; SELECT pg_advisory_xact_lock({self._key})", prepare=False)
            except connection.dialect.loaded_dbapi.Error as error:
                is_waiting = getattr(error, "sqlstate", None) == LOCKED
                if not is_waiting or time.monotonic() > give_up_at:
                    raise database_error(error, connection) from error
            else:
                return
            self._end_idle(driver)

    def _end_idle(self, driver: Any) -> None:
        """End the connection whose process does nothing in its turn.

        PostgreSQL does so itself, but for one that stopped between two messages of a statement.
        """
        driver.rollback()
        high, low = self._key >> 32, self._key & 0xFFFF_FFFF
        driver.execute(_END_IDLE, (high, low, turn_s(self._timeout_s)))

    def done(self) -> None:
        """Do nothing: the turn ended with the transaction."""

    def close(self) -> None:
        """Do nothing: the lock is the connection's."""


def is_in_use(folder: Path) -> bool:
    """Return whether a process has the state open whose locks a folder holds."""
    for path in folder.glob("srv_*.live"):
        with FileLiveness.probe(path) as is_free:
            if not is_free:
                return True
    return False


class FileLiveness:
    """A file for each process that has the state open, locked as long as it lives."""

    def __init__(self, folder: Path, instance: str) -> None:
        self._folder = folder
        self._path = folder / f"{instance}.live"
        self._remove_dead()
        self._descriptor = self._take()

    def is_alive(self, connection: Connection, instance: str) -> bool:  # noqa: ARG002
        """Return whether a process still has the state open."""
        if not _INSTANCE.fullmatch(instance):
            return False
        with self.probe(self._folder / f"{instance}.live") as is_free:
            return not is_free

    def forget(self) -> None:
        """Close a copy that a fork made: it would keep the lock after the process's death."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def close(self) -> None:
        """Mark the state as no longer open in this process."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _take(self) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another process may have found the file before it was locked, and removed it.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), self._path.stat()):
                    return descriptor
            os.close(descriptor)

    def _remove_dead(self) -> None:
        for path in self._folder.glob("srv_*.live"):
            with self.probe(path) as is_free:
                if is_free:
                    path.unlink(missing_ok=True)

    @staticmethod
    @contextlib.contextmanager
    def probe(path: Path) -> Iterator[bool]:
        """Yield whether the file is unlocked; a shared lock, so that two probes do not collide."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            yield True
            return
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)


class ServerLiveness:
    """An advisory lock for each process that has the state open, held by its writing connection.

    The lock is a shared one: a process whose connection was lost takes it again beside the old
    connection, of which the server may not have heard yet.
    """

    def __init__(self, instance: str) -> None:
        self.key = _advisory_key(instance)

    def is_alive(self, connection: Connection, instance: str) -> bool:
        """Return whether a process still has the state open.

        The lock asked for is had until the transaction ends, if it is free.
        """
        is_free = connection.execute(
            text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _advisory_key(instance)}
        ).scalar_one()
        return not is_free

    def forget(self) -> None:
        """Do nothing: a fork does not use the connection."""

    def close(self) -> None:
        """Do nothing: the lock ends with the connection."""


def _advisory_key(instance: str) -> int:
    digest = hashlib.sha256(instance.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class StateFile:
    """The file and the write-ahead log of an open SQLite state.

    An unlinked file takes writes as ever, and they are lost: a write is durable only
    where the path still leads to the written file.
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
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
