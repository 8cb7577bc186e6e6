"""The rows of one kind of job.

A job that runs belongs to one opening of the state, its runner; only the runner writes progress, and
only while the generation is the one that it claimed. The money of a job that has a price is held and
settled in the transaction in which its status changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, insert, select, update

from steelyard.caller import Caller
from steelyard.errors import NotFoundError
from steelyard.jobs import store as jobs
from steelyard.jobs.store import PendingJob
from steelyard.model_use import ModelUse
from steelyard.operations import holds
from steelyard.storage.pages import OrderedPage, comes_after, newest_first
from steelyard.wire.jobs import UNFINISHED, JobNoun
from steelyard.wire.violations import show


@dataclass(frozen=True, slots=True)
class JobStore:
    """Reads and writes the jobs of a table, which has the columns of ``steelyard.jobs.store``."""

    noun: JobNoun
    _: KW_ONLY
    table: Table
    #: What an error says to look at, where there is no such job.
    advice: str
    #: Whether it has the columns ``price_nano`` and ``charge``.
    is_priced: bool = True
    #: The columns with the models that a job uses, and whether it is cancelled where one is discarded.
    models: tuple[str, ...] = ()
    yields: bool = False

    def find(
        self, connection: Connection, job_id: str, account_id: str | None = None
    ) -> Row[Any] | None:
        """Return a job; ``None`` when there is none, or it is not the account's."""
        where = [self.table.c.id == job_id]
        if account_id is not None:
            where.append(self.table.c.account_id == account_id)
        return connection.execute(select(self.table).where(*where)).first()

    def require(self, connection: Connection, caller: Caller, job_id: str) -> Row[Any]:
        """Return a job of an account."""
        row = self.find(connection, job_id, caller.account_id)
        if row is None:
            raise NotFoundError(f"There is no {self.noun.noun} {show(job_id)}; {self.advice}.")
        return row

    def page(
        self,
        connection: Connection,
        account_id: str,
        *,
        statuses: Sequence[str] = (),
        dataset_id: str | None = None,
        limit: int,
        cursor: str | None = None,
        before: Row[Any] | None = None,
    ) -> OrderedPage:
        """Return a page of an account's jobs, the newest first; those ``before`` a job of any kind."""
        where: list[ColumnElement[bool]] = []
        if statuses:
            where.append(self.table.c.status.in_(statuses))
        if dataset_id is not None:
            where.append(self.table.c.dataset_id == dataset_id)
        if before is not None:
            where.append(comes_after(self.table, before.created_at, before.id))
        return newest_first(
            connection,
            self.table,
            owned=self.table.c.account_id == account_id,
            where=where,
            limit=limit,
            cursor=cursor,
        )

    def has_unfinished(self, connection: Connection, dataset_id: str | None = None) -> bool:
        """Return whether there is a job that has not ended, on any dataset or on one."""
        return jobs.has_unfinished(connection, self.table, dataset_id)

    def unfinished_of_account(self, connection: Connection, account_id: str) -> Sequence[Row[Any]]:
        """Return the jobs of an account that have not ended."""
        table = self.table.c
        unfinished = select(self.table).where(
            table.account_id == account_id, table.status.in_(UNFINISHED)
        )
        return connection.execute(unfinished).all()

    def uses(self, connection: Connection, account_id: str) -> list[ModelUse]:
        """Return the models that an account's unfinished jobs use."""
        return [
            ModelUse(id=row.id, adapter=row._mapping[column], yields=self.yields)
            for row in self.unfinished_of_account(connection, account_id)
            for column in self.models
        ]

    def add(
        self,
        connection: Connection,
        values: dict[str, Any],
        *,
        key_id: str | None = None,
        route: str = "",
    ) -> None:
        """Add a job that waits, and hold its price."""
        queued: dict[str, Any] = {"status": "queued", "generation": 1, "attempt": 1}
        price_nano = values["price_nano"] if self.is_priced else 0
        if self.is_priced:
            queued["charge"] = "reserved" if price_nano else "free"
        connection.execute(insert(self.table), {**queued, **values})
        if price_nano:
            holds.hold(
                connection,
                _operation_id(values["id"]),
                account_id=values["account_id"],
                key_id=key_id,
                route=route,
                what=self.noun.kind.replace("_", " "),
                amount_nano=price_nano,
                at=values["created_at"],
            )

    def move(
        self,
        connection: Connection,
        job_id: str,
        status: str,
        *,
        at: float,
        only_if: Sequence[str],
        **values: Any,
    ) -> bool:
        """Move a job to another status, and free its money where it fails or is cancelled."""
        kind = self.noun.kind
        moved = jobs.move(
            connection, self.table, job_id, status, at=at, only_if=only_if, kind=kind, **values
        )
        if moved and status in {"failed", "cancelled"}:
            self.settle(connection, job_id, is_charged=False, at=at)
        return moved

    def save(self, connection: Connection, job: PendingJob, *, at: float, **values: Any) -> bool:
        """Write how far a job is; returns whether the run still counted."""
        return jobs.set_of_run(
            connection,
            self.table,
            job,
            statuses=("running", "cancelling"),
            updated_at=at,
            attempt=1,
            **values,
        )

    def end(
        self,
        connection: Connection,
        job: PendingJob,
        *,
        at: float,
        is_charged: bool = True,
        status: str = "succeeded",
        **values: Any,
    ) -> bool:
        """Write a job's result and charge or release its hold, unpublished; returns whether the run counted."""
        is_ours = jobs.set_of_run(
            connection,
            self.table,
            job,
            statuses=("running",),
            status=status,
            updated_at=at,
            **values,
        )
        if is_ours:
            self.settle(connection, job.id, is_charged=is_charged, at=at)
        return is_ours

    def settle(self, connection: Connection, job_id: str, *, is_charged: bool, at: float) -> None:
        """Charge a job's hold, or release it; nothing without a hold."""
        row = self.find(connection, job_id) if self.is_priced else None
        if row is None or row.charge != "reserved":
            return
        holds.settle(
            connection,
            _operation_id(job_id),
            reserved_nano=row.price_nano,
            amount_nano=row.price_nano if is_charged else 0,
            at=at,
        )
        connection.execute(
            update(self.table)
            .where(self.table.c.id == job_id)
            .values(charge="charged" if is_charged else "released")
        )

    def finish(
        self,
        connection: Connection,
        job: PendingJob,
        *,
        at: float,
        is_charged: bool = True,
        **values: Any,
    ) -> bool:
        """Write and publish a job's result; return whether the run still counted."""
        is_ours = self.end(connection, job, at=at, is_charged=is_charged, **values)
        if is_ours:
            self.publish_success(connection, job)
        return is_ours

    def publish_success(self, connection: Connection, job: PendingJob) -> None:
        """Publish that a job succeeded."""
        jobs.publish_end(connection, self.noun.kind, job.id, job.account_id, "succeeded")


def _operation_id(job_id: str) -> str:
    return f"op_{job_id}"
