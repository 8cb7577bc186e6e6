"""Group commit: one thread runs every write of the process, many to a transaction.

While one transaction is being made durable the next writes gather, so the cost of a commit is
shared by all that wait for it. Writes rarely fail, so they run one after the other first; when one
does fail, all are undone and run again, each in a savepoint of its own: its failure then undoes its
own rows and no other's. One that is alone has the transaction for that.
"""

from __future__ import annotations

import functools
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Connection, Engine, Transaction

from steelyard.errors import SteelyardError, StorageUnavailableError
from steelyard.storage.failures import damaged, is_disconnect, refused, unavailable
from steelyard.storage.locks import StateFile

T = TypeVar("T")

#: The most writes in one transaction; it bounds how long the first of them waits for the last.
_MAX_BATCH = 256

_logger = logging.getLogger(__name__)


class Turns(Protocol):
    """A lock that one process at a time holds to write."""

    def wait(self) -> None:
        """Wait until no other process writes, where that is not done as a transaction begins."""

    def done(self) -> None:
        """Release the lock to the next process."""

    def close(self) -> None:
        """Release the waiting thread."""


@dataclass(frozen=True, slots=True)
class Together(Generic[T]):
    """An item of work that ``run`` does in one go with others of its kind that wait with it."""

    run: Callable[[Connection, Sequence[Any]], Sequence[T]]
    item: Any

    def __call__(self, connection: Connection) -> T:
        """Do it alone."""
        return self.run(connection, [self.item])[0]


@dataclass(slots=True)
class _Write:
    work: Callable[[Connection], Any]
    is_synced: bool = True
    future: Future[Any] = field(default_factory=Future)
    outcome: Any = None
    error: BaseException | None = None

    def run(self, connection: Connection, undo: Callable[[], object]) -> None:
        """Do the work, or undo it and keep its error; raise where the state is unavailable."""
        self.outcome = self.error = None
        try:
            self.outcome = self.work(connection)
        except BaseException as error:
            if unavailable(error) is not None:
                raise
            undo()
            refusal = refused(error)
            if refusal is not None:
                refusal.__cause__ = error
            self.error = refusal or error

    def resolve(self) -> None:
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.outcome)


class Writer:
    """The thread that writes."""

    def __init__(
        self,
        engine: Engine,
        turns: Turns,
        file: StateFile | None = None,
        note: Callable[[BaseException], None] | None = None,
        again_s: float = math.inf,
    ) -> None:
        self._engine = engine
        #: Seconds after which a lost transaction is not made again: its callers may have given up.
        self._again_s = again_s
        self._file = file
        self._turns = turns
        #: Told of every write that fails.
        self._note = note
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._is_closed = False
        self._connection: Connection | None = None
        self._is_syncing = True
        #: When it last committed, by a clock that goes on alone.
        self.written_at = 0.0
        self._thread = threading.Thread(target=self._run, name="steelyard-state", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Connection], T], *, is_synced: bool = True) -> Future[T]:
        """Queue a write; the future ends when it is durable or will never be.

        One that need not be synced may be lost with the machine's power, and by nothing less; a later
        synced write keeps it too. On PostgreSQL all are synced.
        """
        write = _Write(work, is_synced)
        with self._closing:
            if self._is_closed:
                raise StorageUnavailableError("The state is closed: the server is stopping.")
            self._queue.put(write)
        return write.future

    def close(self) -> None:
        """Finish the queue, then stop; later calls change nothing."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch: list[_Write] = []
            try:
                with self._turn():
                    self._commit(first, batch)
            except BaseException as error:  # noqa: BLE001
                # Whatever it was, every caller must hear of it and the thread must go on.
                self._fail(batch or self._gather(first), error)
            else:
                for write in batch:
                    if write.error is not None and self._note is not None:
                        self._note(write.error)
                    write.resolve()
            # The loop may now wait for long; callers' values must not wait with it.
            del batch, first
        self._drop_connection()
        self._turns.close()

    def _commit(self, first: _Write, batch: list[_Write]) -> None:
        is_gathered = False
        began_at = time.monotonic()
        for is_last_try in (False, True):
            connection = self._connected()
            is_committing = False
            if self._file is not None and not is_gathered:
                # The turn was waited for: nothing more comes in while the transaction begins.
                is_gathered = True
                batch += self._gather(first)
            try:
                self._choose_sync(connection, batch)
                with connection.begin() as transaction:
                    if not is_gathered:
                        is_gathered = True
                        batch += self._gather(first)
                    are_all_done = _run(batch, connection, transaction)
                    if are_all_done and transaction.is_active:
                        is_committing = True
                        transaction.commit()
                if not are_all_done:
                    with connection.begin() as transaction:
                        _run_apart(batch, connection)
                        is_committing = True
                        transaction.commit()
            except BaseException as error:
                self._drop_connection()
                # A connection lost before the commit was sent wrote nothing: a server that was
                # restarted since the last write is met with a new connection.
                is_late = time.monotonic() - began_at > self._again_s
                if is_last_try or is_committing or is_late or not is_disconnect(error):
                    raise
            else:
                self._check_written()
                self.written_at = time.monotonic()
                return

    def _choose_sync(self, connection: Connection, batch: list[_Write]) -> None:
        """Make SQLite sync the commit of a batch if one of its writes is to be; not in a transaction."""
        is_synced = any(write.is_synced for write in batch)
        if self._file is None or is_synced is self._is_syncing:
            return
        driver = connection.connection.dbapi_connection
        assert driver is not None  # noqa: S101  it is open
        driver.execute(f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}").close()
        self._is_syncing = is_synced

    def _gather(self, first: _Write) -> list[_Write]:
        """Take the writes that arrived by now, except cancelled ones."""
        waiting = [first]
        while len(waiting) < _MAX_BATCH:
            try:
                write = self._queue.get_nowait()
            except queue.Empty:
                break
            if write is None:
                # The end comes after everything queued: put it back for the outer loop.
                self._queue.put(None)
                break
            waiting.append(write)
        return [write for write in waiting if _begins(write.future)]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._turns.wait()
        try:
            yield
        finally:
            self._turns.done()

    def _check_written(self) -> None:
        if self._file is not None:
            try:
                self._file.check_written()
            except StorageUnavailableError:
                self._drop_connection()
                raise

    def _connected(self) -> Connection:
        if self._file is not None:
            self._file.check()
        if self._connection is None:
            if self._file is not None:
                self._file.forget_log()
            self._connection = self._engine.connect()
            self._is_syncing = True
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.invalidate()
            connection.close()
        except Exception:
            _logger.debug("A connection of the state could not be closed.", exc_info=True)

    def _fail(self, batch: list[_Write], error: BaseException) -> None:
        shown: SteelyardError | None = unavailable(error) or damaged(error)
        if isinstance(error, StorageUnavailableError):
            shown = error
        if shown is None:
            _logger.error("A transaction of the state failed.", exc_info=error)
            shown = StorageUnavailableError("The state could not be written; try again.")
        if self._note is not None:
            self._note(shown)
        for write in batch:
            failure = type(shown)(shown.message)
            failure.__cause__ = error
            write.future.set_exception(failure)


def _run(batch: list[_Write], connection: Connection, transaction: Transaction) -> bool:
    """Run the writes, those of a kind together first; when one of several fails, undo all and tell so."""
    alone = batch
    if len(batch) > 1:
        kinds: dict[Any, list[tuple[_Write, Any]]] = {}
        alone = []
        for write in batch:
            if isinstance(write.work, Together):
                kinds.setdefault(write.work.run, []).append((write, write.work.item))
            else:
                alone.append(write)
        try:
            for run, writes in kinds.items():
                outcomes = run(connection, [item for _, item in writes])
                for (write, _), outcome in zip(writes, outcomes, strict=True):
                    write.outcome, write.error = outcome, None
        except BaseException as error:
            if unavailable(error) is not None:
                raise
            transaction.rollback()
            return False
    for write in alone:
        write.run(connection, transaction.rollback)
        if write.error is not None and len(batch) > 1:
            return False
    return True


def _run_apart(batch: list[_Write], connection: Connection) -> None:
    """Run the writes, each undone by itself when it fails."""
    undo = functools.partial(connection.exec_driver_sql, "ROLLBACK TO SAVEPOINT one_write")
    for write in batch:
        # As text: SQLAlchemy's own savepoints take four times as long.
        connection.exec_driver_sql("SAVEPOINT one_write")
        write.run(connection, undo)
        connection.exec_driver_sql("RELEASE SAVEPOINT one_write")


def begin_to_write(connection: Connection) -> None:
    """Begin a transaction of a SQLite file as one that writes: no other's can come between."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begins(future: Future[Any]) -> bool:
    """Mark a future as running, unless its caller gave it up."""
    return not future.done() and future.set_running_or_notify_cancel()
