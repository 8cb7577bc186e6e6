"""The use cases that all kinds of jobs have: queued within bounds, paged, read and stopped."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct
from sqlalchemy import Connection, Row, func, select

from steelyard.caller import Caller
from steelyard.errors import QueueFullError, TenantQueueFullError
from steelyard.house import House
from steelyard.ids import new_id
from steelyard.job_frame.store import JobStore
from steelyard.jobs.store import status_once_stopped
from steelyard.ledger.max_price import check_price
from steelyard.operations.holds import require_credit
from steelyard.operations.write import Write
from steelyard.storage.pages import OrderedPage
from steelyard.storage.rows import lock_account
from steelyard.wire.jobs import UNFINISHED

#: Seconds after which a full queue may have a place.
_FULL_RETRY_S = 30.0

Job = TypeVar("Job", bound=Struct)
Page = TypeVar("Page", bound=Struct)
Answer = TypeVar("Answer")


class JobQueue(Generic[Job, Page]):
    """The jobs of one kind, of every account."""

    #: Set by each kind.
    jobs: ClassVar[JobStore]
    page_type: ClassVar[type[Any]]
    #: How an error says how many of an account may wait.
    bound: ClassVar[str] = "no more"

    def __init__(self, house: House) -> None:
        self._state, self._writes = house.state, house.writes
        self._now, self._wake = house.now, house.wake
        self._accounts_enabled = house.has_accounts
        self._most = house.settings.job_queue
        self._most_of_account = house.settings.job_queue_per_account

    @staticmethod
    @abstractmethod
    def to_wire(row: Row[Any]) -> Job:
        """Return a job as the wire has it."""

    async def page(self, caller: Caller, query: Any) -> Page:
        """Return a page of the account's jobs, the newest first."""

        def work(connection: Connection) -> Page:
            page = self.read_page(connection, caller.account_id, query)
            answer: Page = page.to_wire(self.page_type, self.items(connection, page.rows))
            return answer

        return await self._state.read(work)

    def read_page(self, connection: Connection, account_id: str, query: Any) -> OrderedPage:
        """Return the rows of a page; a query has those filters that its kind knows."""
        return self.jobs.page(
            connection,
            account_id,
            statuses=getattr(query, "status", ()),
            dataset_id=getattr(query, "dataset_id", None),
            limit=query.limit,
            cursor=query.cursor,
        )

    def items(self, connection: Connection, rows: Sequence[Row[Any]]) -> list[Job]:
        """Return the jobs of a page as the wire has them."""
        del connection  # for kinds that say more of their jobs
        return [self.to_wire(row) for row in rows]

    def detail(self, connection: Connection, row: Row[Any]) -> Job:
        """Return a job as the read of one tells it."""
        del connection
        return self.to_wire(row)

    async def find(self, caller: Caller, job_id: str) -> Row[Any]:
        """Return a job's row."""
        return await self._state.read(
            lambda connection: self.jobs.require(connection, caller, job_id)
        )

    async def get(self, caller: Caller, job_id: str) -> Job:
        """Return a job: how far it is."""
        return await self._state.read(
            lambda connection: self.detail(
                connection, self.jobs.require(connection, caller, job_id)
            )
        )

    async def cancel(self, write: Write, job_id: str) -> Job:
        """Stop a job and release its hold; one that has ended stays as it is."""

        def work(connection: Connection) -> Job:
            row = self.jobs.require(connection, write.caller, job_id)
            if row.status in UNFINISHED:
                self.stop(connection, row)
            return self.detail(connection, self.jobs.require(connection, write.caller, job_id))

        return await self.queue(write, work)

    def stop(self, connection: Connection, row: Row[Any]) -> None:
        """Stop a job that has not ended."""
        status = status_once_stopped(connection, self._state, row)
        self.jobs.move(connection, row.id, status, at=self._now(), only_if=UNFINISHED)

    async def queue(
        self, write: Write, work: Callable[[Connection], Answer], *, window_s: float = 3600.0
    ) -> Answer:
        """Run a write once for its key, and look for jobs once it is committed."""
        answer = await self._writes.once(write, work, window_s=window_s)
        self._wake()
        return answer

    def check_order(
        self,
        connection: Connection,
        account_id: str,
        price_nano: int,
        max_price_usd: str | None,
        what: str,
    ) -> None:
        """Refuse a job that is dearer than the caller takes, has no room, or lacks credit."""
        check_price(price_nano, max_price_usd, what)
        lock_account(connection, account_id)
        self.check_room(connection, account_id)
        if self._accounts_enabled:
            require_credit(connection, account_id, price_nano, what)

    def add(self, connection: Connection, write: Write, **values: Any) -> Row[Any]:
        """Add a job of the caller that waits, hold its price, and return its row."""
        caller, now = write.caller, self._now()
        job_id = new_id(self.jobs.noun.prefix.removesuffix("_"))
        values |= {"id": job_id, "account_id": caller.account_id}
        values |= {"created_at": now, "updated_at": now}
        self.jobs.add(connection, values, key_id=caller.key_id, route=write.route)
        return self.jobs.require(connection, caller, job_id)

    def reader_of(self, connection: Connection, dataset_id: str) -> str | None:
        """Return the work that reads a dataset, as ``DatasetService.register_reader`` asks."""
        noun = self.jobs.noun.noun
        article = "an" if noun[0] in "aeiou" else "a"
        is_read = self.jobs.has_unfinished(connection, dataset_id)
        return f"{article} {noun}" if is_read else None

    def check_room(self, connection: Connection, account_id: str, n_new: int = 1) -> None:
        """Refuse further jobs where as many as may be have not ended."""
        if n_new == 0:
            return
        table, noun = self.jobs.table.c, self.jobs.noun.plural
        of_account = func.count().filter(table.account_id == account_id)
        n_unfinished, n_of_account = connection.execute(
            select(func.count(), of_account).where(table.status.in_(UNFINISHED))
        ).one()
        if n_of_account + n_new > self._most_of_account:
            raise TenantQueueFullError(
                f"{n_of_account} {noun} of the account have not ended, and "
                f"{self.bound.format(self._most_of_account)} may wait; ask again when some have.",
                retry_after_s=_FULL_RETRY_S,
            )
        if n_unfinished + n_new > self._most:
            raise QueueFullError(
                f"The server's queue of {noun} is full; ask again after Retry-After.",
                retry_after_s=_FULL_RETRY_S,
            )
