"""How much a caller may send in a minute, and counting it: requests, and input tokens.

Counters of the last minute, by caller: exact across processes, and bounded in memory. Those that hosts
count together are in ``steelyard.accounts.shared_rates``.

The rule is a sliding window counter: the count of the running minute, plus the part of the
minute before that the last 60 seconds still cover. It counts in an SQLite table, in memory for one
process or in a file that the processes of one server share. Nothing in it is worth keeping, so
nothing is synced to disk.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_random

from steelyard.caller import Caller
from steelyard.errors import RateLimitedError, StorageUnavailableError, TooManyTokensError
from steelyard.wire.violations import BODY
from steelyard.wire.violations import Path as BodyPath

_log = logging.getLogger(__name__)

WINDOW_S = 60
_CONTEXT: BodyPath = (*BODY, "context")
#: Callers counted at once; past it the longest idle and least busy are forgotten.
MAX_CALLERS = 50_000
#: Seconds that a process waits for another one's write before it lets a request pass uncounted.
_LOCK_S = 0.25
#: Seconds that a process waits to open the file while others of the server do.
_OPEN_S = 10.0
#: What sums of parts of windows may be off by.
_ROUNDING = 1e-9

_SCHEMA = """
CREATE TABLE IF NOT EXISTS windows (
    key TEXT PRIMARY KEY, number INTEGER NOT NULL, previous INTEGER NOT NULL,
    current INTEGER NOT NULL
) WITHOUT ROWID
"""
_READ = "SELECT number, previous, current FROM windows WHERE key = ?"
_WRITE = """
INSERT INTO windows VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
SET number = excluded.number, previous = excluded.previous, current = excluded.current
"""


class Counters(Protocol):
    """Counters of requests and input tokens in a minute."""

    async def count(self, what: str, who: str, limit: int, cost: int = 1) -> float | None:
        """Count a cost; ``None`` when it was, else the seconds until there is room."""


class TokenAllowance:
    """The input tokens that each caller may send in a minute."""

    def __init__(self, windows: Counters, per_minute: int) -> None:
        self._windows = windows
        self._per_minute = per_minute

    @property
    def per_minute(self) -> int:
        """The allowance; 0 when there is no bound."""
        return self._per_minute

    def check(self, input_tokens: int, path: BodyPath = _CONTEXT) -> None:
        """Refuse a request that no minute has room for; counts nothing."""
        if self._per_minute and input_tokens > self._per_minute:
            raise TooManyTokensError(
                f"The request has {input_tokens} input tokens, and {self._per_minute} a minute are "
                "allowed; shorten the context, or ask its decisions in several requests.",
                path=path,
            )

    async def take(self, caller: Caller, input_tokens: int, path: BodyPath = _CONTEXT) -> None:
        """Count a request's input tokens, most of them at a path, against its caller's minute."""
        self.check(input_tokens, path)
        await self._take("tokens", identity(caller), input_tokens)

    async def take_public(self, address: str, input_tokens: int) -> None:
        """Count a public request's input tokens against its address's minute."""
        self.check(input_tokens)
        await self._take("public tokens", address, input_tokens)

    async def _take(self, what: str, who: str, input_tokens: int) -> None:
        if not self._per_minute or not input_tokens:
            return
        wait_s = await self._windows.count(what, who, self._per_minute, input_tokens)
        if wait_s is not None:
            raise RateLimitedError(
                f"More than {self._per_minute} input tokens in a minute; wait {wait_s:g} s and "
                "send it again.",
                retry_after_s=wait_s,
            )


class RequestLimits:
    """The requests that each caller, and each address without a key, may send in a minute."""

    def __init__(self, windows: Counters, *, per_minute: int, public_per_minute: int) -> None:
        self._windows = windows
        self._per_minute = per_minute
        self._public_per_minute = public_per_minute

    async def take(self, caller: Caller) -> None:
        """Count a request of a caller."""
        await self._take("requests", identity(caller), self._per_minute)

    async def take_public(self, address: str) -> None:
        """Count a request of an address."""
        await self._take("public", address, self._public_per_minute)

    async def _take(self, what: str, who: str, per_minute: int) -> None:
        if not per_minute:
            return
        wait_s = await self._windows.count(what, who, per_minute)
        if wait_s is not None:
            raise RateLimitedError(
                f"More than {per_minute} requests in a minute; wait {wait_s:g} s and send it again.",
                retry_after_s=wait_s,
            )


def identity(caller: Caller) -> str:
    """Return the name that a caller is counted by: its key, else its account, else its user."""
    if caller.session is not None and caller.session.role is None:
        return caller.session.user_id  # of no account, as many others may be
    return caller.key_id or caller.account_id


#: The number of a caller's running window, the count of the one before, and its own.
Window = tuple[int, int, int]


class RateWindows:
    """Counts requests of callers; safe to use from several threads and processes.

    There is one row a caller: the number of the running window, its count and the one before. A
    counter that cannot be written lets the request pass: a limit is no reason to stop answering.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        clock: Callable[[], float] = time.time,
        max_callers: int = MAX_CALLERS,
    ) -> None:
        self._clock = clock
        self._max_rows = max_callers
        self._lock = threading.Lock()
        self._until_sweep = 0
        self._connection = _open(path)
        self._sweep(int(self._clock() // WINDOW_S))
        self._connection.execute(f"PRAGMA busy_timeout = {_LOCK_S * 1000:.0f}")

    def take(self, what: str, who: str, limit: int, cost: int = 1) -> float | None:
        """Count a cost against a caller's minute; return ``None``, or the seconds until there is room."""
        try:
            return self._take(f"{what}/{who}/{limit}", limit, cost)
        except sqlite3.Error:
            _log.warning("requests are not counted: the counters cannot be written", exc_info=True)
            return None

    async def count(self, what: str, who: str, limit: int, cost: int = 1) -> float | None:
        """Do as ``take`` does, without making the caller wait."""
        return self.take(what, who, limit, cost)

    def __len__(self) -> int:
        """Return the number of callers counted."""
        with self._lock:
            n_rows: int = self._connection.execute("SELECT count(*) FROM windows").fetchone()[0]
        return n_rows

    def close(self) -> None:
        """Close the counters."""
        with self._lock:
            self._connection.close()

    def _take(self, key: str, limit: int, cost: int) -> float | None:
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            now = self._clock()
            number = int(now // WINDOW_S)
            previous, current = counts_in(number, self._row(key))
            rest_s = WINDOW_S - now % WINDOW_S
            if previous * rest_s / WINDOW_S + current + cost > limit + _ROUNDING:
                return seconds_until_room(previous, rest_s, current, limit=limit, cost=cost)
            self._connection.execute(_WRITE, (key, number, previous, current + cost))
            self._until_sweep -= 1
            if self._until_sweep <= 0:
                self._sweep(number)
        return None

    def _row(self, key: str) -> Window | None:
        row: Window | None = self._connection.execute(_READ, (key,)).fetchone()
        return row

    def _sweep(self, number: int) -> None:
        """Remove expired counters and, above the bound, those longest idle and least used."""
        self._connection.execute(
            "DELETE FROM windows WHERE number NOT BETWEEN ? AND ?", (number - 1, number + 1)
        )
        [n_rows] = self._connection.execute("SELECT count(*) FROM windows").fetchone()
        allowed = self._max_rows * 9 // 10
        if n_rows > allowed:
            self._connection.execute(
                "DELETE FROM windows WHERE key IN "
                "(SELECT key FROM windows ORDER BY number, current + previous LIMIT ?)",
                (n_rows - allowed,),
            )
        # No row is added without a count, so this many counts cannot pass the bound by more than
        # a tenth of it for each process.
        self._until_sweep = max(1, self._max_rows // 10)


def _open(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return _connect(":memory:")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connect(str(path))
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise StorageUnavailableError(
                f"The counters of requests cannot be opened: {error}. Look at the free space and the "
                "rights of the setting home."
            ) from error
        # Never synced, so a power cut may leave it unreadable; it holds the last minute alone.
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).unlink()
        return _connect(str(path))


def _connect(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        place, timeout=_OPEN_S, isolation_level=None, check_same_thread=False
    )
    try:
        if place != ":memory:":
            _use_wal(connection)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


@retry(
    retry=retry_if_exception_type(sqlite3.OperationalError),
    wait=wait_random(0.01, 0.05),
    stop=stop_after_delay(_OPEN_S),
    reraise=True,
)
def _use_wal(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on; SQLite's own wait for a lock does not cover the change."""
    connection.execute("PRAGMA journal_mode = WAL")


def counts_in(number: int, row: Window | None) -> tuple[int, int]:
    """Return the counts of the previous and the running window from a stored row."""
    if row is None:
        return 0, 0
    stored, previous, current = row
    if stored > number + 1:  # the clock was set back by more than a window: begun anew
        return 0, 0
    if stored >= number:  # by less than that: stays in the window it reached
        return previous, current
    return (current, 0) if stored == number - 1 else (0, 0)


def seconds_until_room(
    previous: int, rest_s: float, current: int, *, limit: int, cost: int
) -> float:
    """Return the seconds until the weighted count leaves room; ``rest_s`` are the window's last."""
    room = limit - cost - current
    if room >= 0:  # enough of the window before must pass
        spare = rest_s - room * WINDOW_S / previous if previous else 0.0
    else:  # the running window must end, and then enough of it must pass
        spare = rest_s + WINDOW_S * (1 - (limit - cost) / current)
    return max(math.ceil(spare * 1000) / 1000, 0.001)
