"""Running tasks that set up judges and routes: each in a thread, with its progress."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from steelyard.durable import write_atomically
from steelyard.errors import ModelUnavailableError, QueueFullError, SteelyardError
from steelyard.models.judge_wire import SetupTask, TaskKind
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.connected.declared import ModelsFile
from steelyard.settings import InvalidSettingError
from steelyard.wire.decoding import decode

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

#: What is worked on at once; a download or a check takes the machine.
_MOST_AT_ONCE = 2
#: What runs in a process, by its id, in a file of the home: the next start says what was cut short.
_RUNNING = "setup-{}.json"
_CUT_SHORT = "The server ended before this did; start it again."

#: Takes what is done, and of how much.
Report = Callable[[int, int], None]
#: Kinds of tasks that always do the same: begun again, the one that runs goes on.
_RESUMED: frozenset[TaskKind] = frozenset(("download", "check"))


class SetupTasks:
    """Tasks by the name of their judge or route, known until the server ends.

    Those that the end of a server cut short are failed ones of the next. Safe to use from several
    threads.
    """

    def __init__(self, home: Path, writes: KeyedWrites, declarations: Declarations) -> None:
        self._writes, self._declarations = writes, declarations
        self._order = asyncio.Lock()
        self._lock = threading.Lock()
        self._is_closed = False
        self._path = home / _RUNNING.format(os.getpid())
        self._tasks = {
            name: SetupTask(kind=kind, status="failed", error=_CUT_SHORT)
            for path in home.glob(_RUNNING.format("*"))
            for name, kind in _cut_short(path).items()
        }
        self._stopping: set[str] = set()

    async def once(self, write: Write, work: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Change something once for each idempotency key, and replay the answer after."""
        if write.key is None:
            return await work()
        # One after another: a file and a thread are no part of the transaction that notes the key.
        async with self._order:
            await self._writes.replay_known(write)
            answer = await work()
            return await self._writes.once(write, lambda _: answer)

    def declared(self) -> ModelsFile:
        """Return the connected models and routes; it blocks."""
        try:
            return self._declarations.read()
        except InvalidSettingError as error:
            raise ModelUnavailableError(str(error)) from error

    def change(self, change: Callable[[ModelsFile], ModelsFile]) -> None:
        """Write what a function returns of the connected models and routes; it blocks."""
        try:
            self._declarations.change(change)
        except InvalidSettingError as error:
            raise ModelUnavailableError(str(error)) from error

    def close(self) -> None:
        """Keep the note of running tasks: failures from now on are due to the server's end."""
        with self._lock:
            self._is_closed = True

    def get(self, name: str) -> SetupTask | None:
        """Return the last task of a name."""
        return self._tasks.get(name)

    def forget(self, name: str) -> None:
        """Remove the task of a removed model."""
        self._tasks.pop(name, None)

    def names(self, kind: TaskKind) -> list[str]:
        """Return the names that have a task of a kind."""
        return [name for name, task in list(self._tasks.items()) if task.kind == kind]

    def is_running(self, name: str) -> bool:
        """Return whether the last task of a name goes on."""
        task = self.get(name)
        return task is not None and task.status == "running"

    def stop(self, name: str) -> None:
        """Stop the task under a name at its next report."""
        with self._lock:
            if self.is_running(name):
                self._stopping.add(name)

    def start(self, name: str, kind: TaskKind, work: Callable[[Report], None]) -> None:
        """Begin something in a thread; a download or a check that runs already goes on instead."""
        with self._lock:
            running = [key for key, task in self._tasks.items() if task.status == "running"]
            if name in running:
                begun = self._tasks[name].kind
                if begun == kind and kind in _RESUMED:
                    return
                raise ModelUnavailableError(
                    f"The {begun} of {name} goes on; wait until it has ended, and try again."
                )
            if len(running) >= _MOST_AT_ONCE:
                raise QueueFullError(
                    f"{' and '.join(running)} are worked on already; wait until one has ended."
                )
            self._stopping.discard(name)
            self._tasks[name] = SetupTask(kind=kind, status="running")
            self._note_running()
        thread = threading.Thread(
            target=self._run, args=(name, kind, work), name=f"setup-{kind}", daemon=True
        )
        thread.start()

    def _run(self, name: str, kind: TaskKind, work: Callable[[Report], None]) -> None:
        def report(done: int, total: int) -> None:
            if name in self._stopping:
                raise ModelUnavailableError("Stopped. What was done so far stays; start it again.")
            self._tasks[name] = SetupTask(kind=kind, status="running", done=done, total=total)

        try:
            work(report)
        except (SteelyardError, InvalidSettingError, OSError) as error:
            self._end(name, str(error) or type(error).__name__)
        except Exception:  # noqa: BLE001  told to whoever asks how far it is
            if not self._is_closed:
                _log.exception("The %s of %s failed.", kind, name)
            self._end(name, "It failed inside the server; the log says why.")
        else:
            self._end(name, None)

    def _end(self, name: str, error: str | None) -> None:
        ended = msgspec.structs.replace(
            self._tasks[name], status="succeeded" if error is None else "failed", error=error
        )
        with self._lock:
            self._tasks[name] = ended
            if error is None or not self._is_closed:
                self._note_running()

    def _note_running(self) -> None:
        running = {
            name: task.kind for name, task in self._tasks.items() if task.status == "running"
        }
        with suppress(OSError):  # on a disk that takes nothing the task itself says so
            if running:
                write_atomically(self._path, msgspec.json.encode(running))
            else:
                self._path.unlink(missing_ok=True)


def _cut_short(path: Path) -> dict[str, TaskKind]:
    """Return the tasks of a process that ended early, and remove its file; nothing of a running one."""
    with suppress(OSError, ValueError, msgspec.DecodeError):
        if _is_of_another(int(path.stem.partition("-")[2])):
            return {}
        running = decode(path.read_bytes(), dict[str, TaskKind])
        path.unlink()
        return running
    return {}


def _is_of_another(pid: int) -> bool:
    """Whether another process has an id now; in a container that begins anew it may be this one's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid != os.getpid()


def each_side(
    sides: Sequence[list[dict[str, Any]]], report: Report
) -> Iterator[tuple[list[dict[str, Any]], Callable[[int], None]]]:
    """Yield the rows of each side, with a function that reports progress over all sides."""
    total, before = sum(map(len, sides)), 0
    for rows in sides:
        yield rows, partial(_add_up, report, before, total)
        before += len(rows)


def _add_up(report: Report, before: int, total: int, done: int) -> None:
    report(before + done, total)


def first_rows(pieces: Iterator[bytes], most: int) -> list[dict[str, Any]]:
    """Return the first rows of a download of JSON Lines."""
    rows: list[dict[str, Any]] = []
    for line in _lines(pieces):
        if len(rows) >= most:
            break
        rows.append(msgspec.json.decode(line))
    return rows


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)
    if rest:
        yield rest
