"""Setting up judges and routes, as a kind of job that runs in a process that answers.

What a setup stores, it stores in the transaction that ends it: one that was stopped, or that another
process took up, stores nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Row, Table

from steelyard.caller import Caller
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.wire import Partition
from steelyard.errors import ModelUnavailableError, SteelyardError
from steelyard.jobs import store
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import LostRunError, Run, TableWork
from steelyard.models.judge_wire import TaskKind
from steelyard.models.setups import SETUPS
from steelyard.models.tables import model_setups
from steelyard.serving.connected.checking import Submit
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.connected.declared import ModelsFile
from steelyard.settings import InvalidSettingError
from steelyard.storage import State
from steelyard.wire.decoding import decode

_Struct = TypeVar("_Struct", bound=Struct)
#: Takes what is done, and of how much.
Report = Callable[[int, int], None]
#: Seconds between two writes of how far a setup is.
_SAVE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a setup, and what is written with it."""

    result: Struct | None = None
    change: Callable[[ModelsFile], ModelsFile] | None = None
    write: Callable[[Connection], object] = lambda _: None


class SetupRun(Run):
    """A setup that runs here."""

    def __init__(self, job: PendingJob, work: SetupRuns) -> None:
        super().__init__(job)
        self._work = work
        self._row: Row[Any] | None = None
        self._done = self._total = 0
        self._saved_at = 0.0
        self._under_way: set[Future[Any]] = set()

    @property
    def row(self) -> Row[Any]:
        """The row of the setup as it was begun."""
        if self._row is None:
            self._row = self._work.find(self.job)
        return self._row

    @property
    def caller(self) -> Caller:
        """The account that began it."""
        return Caller(self.row.account_id, None, "full", "worker")

    def request(self, type_: type[_Struct]) -> _Struct:
        """Return what was asked for."""
        return decode(self.row.request, type_)

    def asking(self, submit: Submit) -> Submit:
        """Return how it asks a model: what is under way is cancelled once it is to stop."""

        def ask(*request: Any) -> Future[Any]:
            self.check()
            future = submit(*request)
            self._under_way.add(future)
            future.add_done_callback(self._under_way.discard)
            if self.stopping.is_set():
                future.cancel()
            return future

        return ask

    def stop(self) -> None:
        """Make it end soon, also where a model takes long to answer."""
        super().stop()
        for future in self._under_way.copy():
            future.cancel()

    def report(self, done: int, total: int) -> None:
        """Note how far it is; raise ``LostRunError`` once it is to stop."""
        self.check()
        self._done, self._total = done, total
        if time.monotonic() - self._saved_at >= _SAVE_S:
            self._saved_at = time.monotonic()
            self.save(done=done, total=total)

    def save(self, **values: Any) -> None:
        """Write columns of its row."""
        work = self._work
        work.write(lambda connection: SETUPS.save(connection, self.job, at=work.now(), **values))

    def advance(self) -> bool:
        """Do all of it."""
        work, self._row = self._work, None
        try:
            outcome = work.steps[self.row.kind](self)
            self.check()
            if outcome.change is None:
                work.state.write_now(lambda connection: self._end(connection, outcome))
            else:
                work.declarations.change(
                    outcome.change, beside=lambda connection: self._end(connection, outcome)
                )
        except (InvalidSettingError, OSError) as error:
            if isinstance(error, SteelyardError):
                raise
            raise ModelUnavailableError(str(error) or type(error).__name__) from error
        return False

    def _end(self, connection: Connection, outcome: Outcome) -> None:
        values: dict[str, Any] = {"done": self._done, "total": self._total}
        if outcome.result is not None:
            values["result"] = msgspec.json.encode(outcome.result)
        outcome.write(connection)
        if not SETUPS.finish(connection, self.job, at=self._work.now(), **values):
            raise LostRunError

    def close(self) -> None:
        """Do nothing: a run holds nothing between two steps."""


@dataclass(eq=False, slots=True)
class SetupRuns(TableWork):
    """Setups of some kinds as a kind of job: downloads wait for no checks."""

    name: ClassVar[str] = "model_setup"
    table: ClassVar[Table] = model_setups
    move = staticmethod(SETUPS.move)

    state: State
    declarations: Declarations
    #: What does a setup of each kind.
    steps: Mapping[TaskKind, Callable[[SetupRun], Outcome]]
    _: KW_ONLY
    now: Callable[[], float] = time.time

    def pending(self, connection: Connection) -> list[PendingJob]:
        """Return the setups of these kinds that have not ended, the oldest first."""
        return store.unfinished(connection, self.table, self.table.c.kind.in_(self.steps))

    def open(self, job: PendingJob) -> SetupRun:
        """Return the run of a setup."""
        return SetupRun(job, self)

    def sweep(self) -> None:
        """Do nothing: a setup has no files."""


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


def rows_of_side(
    rows: DatasetRows, run: SetupRun, side: Partition, most: int
) -> list[dict[str, Any]]:
    """Return the first rows of a side of the dataset that a setup is of; it blocks."""
    row = run.row
    return first_rows(
        asyncio.run(rows.download(run.caller, row.dataset_id, side, row.dataset_version)), most
    )


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
