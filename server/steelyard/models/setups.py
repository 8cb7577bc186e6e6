"""Jobs that set up judges and routes: begun, followed, stopped, and what the last of each came to.

They run in a process that answers, beside its models: see ``steelyard.models.setup_run``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Row, delete, func, or_, select

from steelyard.caller import Caller
from steelyard.errors import ModelUnavailableError
from steelyard.house import House
from steelyard.ids import new_id
from steelyard.job_frame.queue import JobQueue
from steelyard.job_frame.store import JobStore
from steelyard.jobs.failures import failure_of
from steelyard.models.judge_wire import SetupTask, TaskKind
from steelyard.models.setup_wire import SETUP, ModelSetup, ModelSetupPage
from steelyard.models.tables import model_setups
from steelyard.operations.write import Write
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.connected.declared import ModelsFile
from steelyard.settings import InvalidSettingError
from steelyard.wire.decoding import decode
from steelyard.wire.filling import filled
from steelyard.wire.jobs import UNFINISHED

_Answer = TypeVar("_Answer")
_Struct = TypeVar("_Struct", bound=Struct)

#: Kinds of tasks that always do the same: begun again, the one that runs goes on.
_RESUMED: frozenset[TaskKind] = frozenset(("download", "check", "backup"))
_STOPPED = "Stopped. What was done so far stays; start it again."

SETUPS = JobStore(SETUP, table=model_setups, advice="look at GET /v1/setups", is_priced=False)


@dataclass(frozen=True, slots=True)
class LastSetups:
    """The last task of each model and route, and the last results of each kind."""

    tasks: dict[str, SetupTask]
    results: dict[tuple[str, str], bytes]

    def without_success(self, kind: TaskKind) -> list[str]:
        """Return the names whose last task is of a kind, and goes on or failed."""
        return [
            name
            for name, task in self.tasks.items()
            if task.kind == kind and task.status != "succeeded"
        ]

    def result(self, name: str, kind: TaskKind, type_: type[_Struct]) -> _Struct | None:
        """Return the last result of a kind; ``None`` where there is none."""
        result = self.results.get((name, kind))
        return None if result is None else decode(result, type_)


class ModelSetups(JobQueue[ModelSetup, ModelSetupPage]):
    """The setups of every account, and the declarations that they change."""

    jobs = SETUPS
    page_type = ModelSetupPage

    def __init__(self, house: House, declarations: Declarations) -> None:
        super().__init__(house)
        self.declarations = declarations
        self._order = asyncio.Lock()

    @staticmethod
    def to_wire(row: Row[Any]) -> ModelSetup:
        """Return a setup as the wire has it."""
        failure = failure_of(row)
        error = None if failure is None else failure.message
        return filled(ModelSetup, row, object="model.setup", error=error)

    async def once(self, write: Write, work: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Change something once for each idempotency key, and replay the answer after."""
        if write.key is None:
            return await work()
        # One after another: what is changed is no part of the transaction that notes the key.
        async with self._order:
            return await self._writes.answer_once(write, work)

    def declared(self) -> ModelsFile:
        """Return the connected models and routes; it blocks."""
        try:
            return self.declarations.read()
        except InvalidSettingError as error:
            raise ModelUnavailableError(str(error)) from error

    def change(self, change: Callable[[ModelsFile], ModelsFile]) -> None:
        """Write what a function returns of the connected models and routes; it blocks."""
        try:
            self.declarations.change(change)
        except InvalidSettingError as error:
            raise ModelUnavailableError(str(error)) from error

    def last(self) -> LastSetups:
        """Return how the last setups of each model and route are; it blocks."""
        return self._state.read_now(_last)

    def forget(self, name: str) -> None:
        """Remove what ended of a removed route; it blocks."""
        of = model_setups.c
        ended = delete(model_setups).where(of.name == name, of.status.not_in(UNFINISHED))
        self._state.write_now(lambda connection: connection.execute(ended))

    async def stop_all(self, name: str) -> None:
        """Stop what goes on of a model."""

        def work(connection: Connection) -> None:
            for row in _unfinished(connection, name):
                self.stop(connection, row)

        await self._state.write(work)
        self._wake()

    async def begin(
        self,
        caller: Caller,
        kind: TaskKind,
        name: str,
        request: Struct | None = None,
        *,
        dataset_id: str | None = None,
        version: int | None = None,
    ) -> None:
        """Queue a setup; a download or a check that goes on already does so."""

        def work(connection: Connection) -> None:
            for row in _unfinished(connection, name):
                if row.kind == kind and kind in _RESUMED and row.status != "cancelling":
                    return
                raise ModelUnavailableError(
                    f"The {row.kind} of {name} goes on; wait until it has ended, and try again."
                )
            self.check_room(connection, caller.account_id)
            now = self._now()
            values = {
                "id": new_id("set"),
                "account_id": caller.account_id,
                "kind": kind,
                "name": name,
                "dataset_id": dataset_id,
                "dataset_version": version,
                "created_at": now,
                "updated_at": now,
                "request": None if request is None else msgspec.json.encode(request),
                "done": 0,
                "total": 0,
            }
            self.jobs.add(connection, values)

        await self._state.write(work)
        self._wake()


def _unfinished(connection: Connection, name: str) -> Sequence[Row[Any]]:
    of = model_setups.c
    unfinished = select(model_setups).where(of.name == name, of.status.in_(UNFINISHED))
    return connection.execute(unfinished).all()


def _last(connection: Connection) -> LastSetups:
    of = model_setups.c
    newest = select(func.max(of.id)).group_by(of.name, of.kind)
    with_result = newest.where(of.result.is_not(None))
    rows = connection.execute(
        select(model_setups)
        .where(or_(of.id.in_(newest), of.id.in_(with_result)))
        .order_by(of.created_at, of.id)
    )
    last = LastSetups({}, {})
    for row in rows:
        last.tasks[row.name] = _task(row)
        if row.result is not None:
            last.results[row.name, row.kind] = row.result
    return last


def _task(row: Row[Any]) -> SetupTask:
    failure = failure_of(row)
    error = None if failure is None else failure.message
    if row.status in UNFINISHED:
        status = "running"
    elif row.status == "cancelled":
        status, error = "failed", _STOPPED
    else:
        status = row.status
    return filled(SetupTask, row, status=status, error=error)
