"""The state's database: opened, migrated, written by one thread and read by several.

SQLite (in WAL mode, every commit synced) or PostgreSQL, by the URL; the code is the same. Several
processes may have one SQLite file open on one host, and one PostgreSQL database on any.

A ``State`` belongs to the process that opened it: after a fork the child must open its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from steelyard.errors import DataDamagedError, StorageUnavailableError
from steelyard.settings import InvalidSettingError
from steelyard.storage.bounded import TIMEOUT_S, bound, connect_arguments
from steelyard.storage.damage import STATE, DamageNotes
from steelyard.storage.failures import is_disconnect, refused, unavailable
from steelyard.storage.home import check_room
from steelyard.storage.locks import (
    COUNT_KEY,
    FileLiveness,
    FileTurns,
    ServerLiveness,
    ServerTurns,
    StateFile,
    new_instance,
)
from steelyard.storage.migrate import bring_to_head
from steelyard.storage.writer import Writer, begin_to_write
from steelyard.waiting import wait_for_end

T = TypeVar("T")

#: Seconds that a write of a SQLite state waits for its turn, and SQLite for a lock.
WAIT_S = 30.0
_READERS = 4
#: Seconds that a count waits for a lock of the database.
_COUNT_S = 5.0
#: Of the time for a turn, how long a lost connection is made again for.
_AGAIN = 0.375
#: Seconds that a write which has begun on PostgreSQL has to end, after the wait for its turn.
_END_S = 1.5

#: Errors of statements are logged: their parameters, which hold callers' data, stay out.
create_engine = functools.partial(sqlalchemy.create_engine, hide_parameters=True)

_LATE = "The state is being written by another process for too long; try again."
_UNKNOWN = (
    "The state did not say in time whether this was written; look at it before you send it again, or "
    "send the same Idempotency-Key."
)
_SILENT = "The state's database did not answer in time; try again in a few seconds."


class State:
    """An open state; ``open_state`` makes it."""

    def __init__(
        self,
        *,
        instance: str,
        writer: Writer,
        readers: Engine,
        lookups: Engine,
        liveness: FileLiveness | ServerLiveness,
        file: StateFile | None = None,
        damage: DamageNotes | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.instance = instance
        #: Seconds that a read may take; ``None`` without a bound.
        self._read_s = None if timeout_s is None else timeout_s + _END_S
        self._turn_s, self._end_s = (WAIT_S, WAIT_S) if timeout_s is None else (timeout_s, _END_S)
        #: When it was last read, by a clock that goes on alone.
        self.read_at = 0.0
        self._writer = writer
        self._readers = readers
        self._lookups = lookups
        self._file = file
        self._damage = damage
        self._liveness = liveness
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="steelyard-read")
        self._looking = threading.Lock()
        self._look_up_on: Connection | None = None
        self._process = os.getpid()
        self._is_closed = False
        _opened.add(self)

    def submit(self, work: Callable[[Connection], T], *, is_synced: bool = True) -> Future[T]:
        """Queue a write and give its future; see ``write``."""
        self._check_process()
        return self._writer.submit(work, is_synced=is_synced)

    async def write(self, work: Callable[[Connection], T], *, is_synced: bool = True) -> T:
        """Run a write in a transaction; it is durable when this returns.

        The work runs on the writer's thread, maybe beside other writes in one transaction, and maybe
        again after a lost connection: it must touch only the database. An exception of it undoes its
        writes and is raised here. A cancelled call is not written if its turn has not come; otherwise
        it may be, and so may one that is given up because the database says nothing.

        Unsynced writes survive the process, however it ends, but maybe not the machine's power: they
        are for data that was not acknowledged yet, and that its process would have to end.
        """
        future = self.submit(work, is_synced=is_synced)
        if await wait_for_end(future, self._turn_s):
            return future.result()
        if future.cancel():
            raise StorageUnavailableError(_LATE)
        if await wait_for_end(future, self._end_s):
            return future.result()
        raise StorageUnavailableError(_UNKNOWN)

    def write_now(self, work: Callable[[Connection], T]) -> T:
        """Do as ``write`` does, blocking the calling thread."""
        future = self.submit(work)
        for wait_s in (self._turn_s, self._end_s):
            wait((future,), wait_s)
            if future.done():
                return future.result()
            if future.cancel():
                raise StorageUnavailableError(_LATE)
        raise StorageUnavailableError(_UNKNOWN)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a read on a thread; all its statements see the same commits."""
        self._check_open()
        return await self._read_on_thread(self._readers, work)

    async def look_up(self, work: Callable[[Connection], T]) -> T:
        """Do as ``read`` does for a single statement, without a transaction around it.

        A few rows of a local file are read on the calling thread: another one would take longer to
        begin than to read them. Where that had to wait, another thread does.
        """
        self._check_open()
        if self._file is not None:
            with contextlib.suppress(StorageUnavailableError):
                return self._look_up_here(work)
            return await self.read(work)
        return await self._read_on_thread(self._lookups, work)

    async def _read_on_thread(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        read = functools.partial(self._read_from, engine, work)
        outcome = asyncio.get_running_loop().run_in_executor(self._pool, read)
        limit = asyncio.timeout(self._read_s)
        try:
            async with limit:
                return await outcome
        except TimeoutError:
            if limit.expired():
                raise StorageUnavailableError(_SILENT) from None
            raise

    def _look_up_here(self, work: Callable[[Connection], T]) -> T:
        """Read on a connection that stays open: taking one from a pool costs as much as the read."""
        if not self._looking.acquire(blocking=False):
            return self._read_from(self._lookups, work)
        try:
            if self._look_up_on is None:
                self._look_up_on = self._lookups.connect()
            outcome = work(self._look_up_on)
            if self._look_up_on.in_transaction():
                self._look_up_on.rollback()
        except BaseException as error:
            self._forget_look_up()
            if isinstance(error, SQLAlchemyError | msgspec.DecodeError | UnicodeDecodeError):
                raise self.explain(error) from error
            raise
        else:
            return outcome
        finally:
            self._looking.release()

    def _forget_look_up(self) -> None:
        connection, self._look_up_on = self._look_up_on, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """Do as ``read`` does, on the calling thread."""
        return self._read_from(self._readers, work)

    def _read_from(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        self._check_open()
        began_at = time.monotonic()
        try:
            outcome = _read_once(engine, work)
        except (SQLAlchemyError, msgspec.DecodeError, UnicodeDecodeError) as error:
            # A database that said nothing for long will say nothing now.
            if not is_disconnect(error) or time.monotonic() - began_at > self._turn_s / 2:
                raise self.explain(error) from error
            # The server was restarted since the pooled connection was last used.
            try:
                outcome = _read_once(engine, work)
            except SQLAlchemyError as again:
                raise self.explain(again) from again
        self.read_at = time.monotonic()
        return outcome

    @property
    def is_shared(self) -> bool:
        """Whether other hosts may have it open too."""
        return self._file is None

    @property
    def written_at(self) -> float:
        """When it was last written, by a clock that goes on alone."""
        return self._writer.written_at

    def explain(self, error: Exception) -> Exception:
        """Return the error to raise for a failure of the state, and note damage."""
        explained = unavailable(error) or refused(error) or error
        if isinstance(explained, DataDamagedError) and self._damage is not None:
            explained.__cause__ = error
            self._damage.note(STATE, explained)
        return explained

    def is_alive(self, connection: Connection, instance: str) -> bool:
        """Return whether an opening of this state, in any process, is alive."""
        return instance == self.instance or self._liveness.is_alive(connection, instance)

    def close(self) -> None:
        """Finish the writes that are queued and let go of the database; may be called twice."""
        self._check_process()
        if self._is_closed:
            return
        self._is_closed = True
        self._writer.close()
        self._pool.shutdown()
        with self._looking:
            self._forget_look_up()
        self._readers.dispose()
        self._lookups.dispose()
        self._liveness.close()

    def _check_open(self) -> None:
        self._check_process()
        if self._is_closed:
            raise StorageUnavailableError("The state is closed: the server is stopping.")
        if self._file is not None:
            self._file.check_now_and_then()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(
                "This state was opened by the process that forked this one; open it anew here."
            )

    def _inherited(self) -> None:
        self._liveness.forget()


def _note_damage(damage: DamageNotes | None, error: BaseException) -> None:
    if damage is not None and isinstance(error, DataDamagedError):
        damage.note(STATE, error)


def _read_once(engine: Engine, work: Callable[[Connection], T]) -> T:
    with engine.connect() as connection:
        return work(connection)


# SQLite must not close, in a forked child, its parent's files: the copies are kept for good.
_opened: weakref.WeakSet[State] = weakref.WeakSet()
_inherited: list[State] = []


def _keep_inherited() -> None:
    for state in list(_opened):
        _inherited.append(state)
        state._inherited()
    _opened.clear()


os.register_at_fork(after_in_child=_keep_inherited)


def open_state(
    url: str, damage: DamageNotes | None = None, *, timeout_s: float = TIMEOUT_S
) -> State:
    """Open the state, made or migrated first where that is needed."""
    parsed = parse_url(url)
    try:
        if parsed.get_backend_name() == "sqlite":
            return _open_file(parsed, damage)
        return _open_server(parsed, damage, timeout_s)
    except (SQLAlchemyError, UnicodeDecodeError) as error:
        raise (unavailable(error) or refused(error) or error) from error
    except OSError as error:
        raise StorageUnavailableError(
            f"The state cannot be opened: {error.strerror or error}. Check the folder of the "
            "setting home or state_url: its disk needs free space, and its user the right to write."
        ) from error


def parse_url(url: str) -> URL:
    """Return the address of a database that can hold the state, with the driver that is used."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        backend, parsed = "", None
    if (
        parsed is not None
        and backend == "sqlite"
        and parsed.drivername in {"sqlite", "sqlite+pysqlite"}
    ):
        if parsed.database and parsed.database != ":memory:" and not parsed.query:
            return parsed
    elif parsed is not None and parsed.drivername in {"postgresql", "postgresql+psycopg"}:
        return parsed.set(drivername="postgresql+psycopg")
    # The URL itself may hold a password: it is not repeated.
    raise InvalidSettingError(
        "The setting state_url (STEELYARD_STATE_URL) names no database that can hold the state; "
        "give sqlite:///PATH or postgresql+psycopg://USER@HOST/DATABASE."
    )


def _open_file(url: URL, damage: DamageNotes | None) -> State:
    path = Path(url.database or "").expanduser().absolute()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite gives its other files the mode of this one. One that is there is not opened here:
    # closing it would drop the locks of every connection that this process has to it.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    locks = path.with_name(f"{path.name}.locks")
    locks.mkdir(mode=0o700, exist_ok=True)
    url = url.set(database=str(path))
    writing = create_engine(url, poolclass=NullPool, connect_args=_FILE_ARGUMENTS)
    event.listen(writing, "connect", _prepare_file_writer)
    event.listen(writing, "begin", begin_to_write)
    reading = create_engine(
        url, pool_size=_READERS, max_overflow=3 * _READERS, connect_args=_FILE_ARGUMENTS
    )
    looking = create_engine(url, pool_size=1, connect_args={**_FILE_ARGUMENTS, "timeout": 0})
    for engine in (reading, looking):
        event.listen(engine, "connect", _prepare_file_reader)
    event.listen(reading, "begin", _begin_read)
    turns = FileTurns(locks)
    try:
        turns.wait()
        try:
            bring_to_head(writing)
        except SQLAlchemyError:
            # SQLite says of a disk without room for its index of the log that it failed.
            check_room(locks)
            raise
        finally:
            turns.done()
        instance = new_instance()
        liveness = FileLiveness(locks, instance)
        file = StateFile(path)
    except BaseException:
        turns.close()
        raise
    return State(
        instance=instance,
        writer=Writer(writing, turns, file, functools.partial(_note_damage, damage)),
        readers=reading,
        lookups=looking,
        liveness=liveness,
        file=file,
        damage=damage,
    )


#: The readers' threads share the pooled connections, one at a time.
_FILE_ARGUMENTS = {"check_same_thread": False, "timeout": WAIT_S}


def _prepare_file_writer(connection: Any, _record: object) -> None:
    # Transactions are begun by the listeners below and not by the driver, which would begin them
    # late and never before a SAVEPOINT.
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _prepare_file_reader(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only = ON").close()


def _begin_read(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _open_server(url: URL, damage: DamageNotes | None, timeout_s: float) -> State:
    instance = new_instance()
    liveness = ServerLiveness(instance)
    arguments = connect_arguments(url, "steelyard", timeout_s)
    try:
        migrating = create_engine(url, poolclass=NullPool, connect_args=arguments)
        writing = create_engine(url, poolclass=NullPool, connect_args=arguments)
        reading = create_engine(
            url,
            pool_size=_READERS,
            max_overflow=3 * _READERS,
            pool_timeout=timeout_s,
            connect_args=arguments,
            isolation_level="REPEATABLE READ",
        )
    except ImportError:
        raise InvalidSettingError(
            "The setting state_url (STEELYARD_STATE_URL) names a PostgreSQL database, and its "
            "driver is not installed; install steelyard[postgres]."
        ) from None

    def prepare_writer(connection: Any, _record: object) -> None:
        connection.autocommit = True
        connection.execute("SET SESSION synchronous_commit = on")
        connection.execute("SELECT pg_advisory_lock_shared(%s)", (liveness.key,))

    bound(writing, timeout_s, has_turn=True)
    bound(reading, timeout_s, has_turn=False)
    event.listen(writing, "connect", prepare_writer)
    # A migration may take its time.
    bring_to_head(migrating)
    turns = ServerTurns(timeout_s=timeout_s)
    event.listen(writing, "begin", turns.begin)
    return State(
        instance=instance,
        writer=Writer(
            writing,
            turns,
            note=functools.partial(_note_damage, damage),
            again_s=timeout_s * _AGAIN,
        ),
        readers=reading,
        lookups=reading.execution_options(isolation_level="AUTOCOMMIT"),
        liveness=liveness,
        damage=damage,
        timeout_s=timeout_s,
    )


def open_counters(url: str) -> Writer | None:
    """Return a writer of counters that every host shares; ``None`` where one host has the state.

    Its writes wait for no other's and no disk: a crash of the database may lose the last of them.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return None
    arguments = connect_arguments(parsed, "steelyard-counters", _COUNT_S)
    counting = create_engine(parsed, poolclass=NullPool, connect_args=arguments)
    bound(counting, _COUNT_S, has_turn=True)
    event.listen(counting, "connect", _prepare_counters)
    turns = ServerTurns(COUNT_KEY, timeout_s=_COUNT_S)
    event.listen(counting, "begin", turns.begin)
    return Writer(counting, turns)


def _prepare_counters(connection: Any, _record: object) -> None:
    connection.autocommit = True
    connection.execute("SET SESSION synchronous_commit = off")
