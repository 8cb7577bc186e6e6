"""What the parts of a client share: they send calls through it, and read what comes in pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from steelyard.client.answers import RecordList
from steelyard.client.calls import Call
from steelyard.client.progress import progress_bar
from steelyard.client.uploads import Upload
from steelyard.client.waiting import Following, Job_, Kind, Looking
from steelyard.datasets.wire import Dataset
from steelyard.evaluations.wire import MAX_RECORDS, JobRecord
from steelyard.labeling.wire import LabelingSource

if TYPE_CHECKING:
    from steelyard.client.asynchronous.client import AsyncClient

_Answer = TypeVar("_Answer")
_Made = TypeVar("_Made", bound=Dataset | LabelingSource)
_Item_co = TypeVar("_Item_co", covariant=True)


class Page(Protocol[_Item_co]):
    """A page of a list."""

    @property
    def data(self) -> Sequence[_Item_co]:
        """What is on it."""

    @property
    def has_more(self) -> bool:
        """Whether another page follows."""


class CursorPage(Page[_Item_co], Protocol[_Item_co]):
    """A page of a list, and where the next begins."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins."""


class AsyncResource:
    """The calls of a client about one subject."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)

    async def _upload(self, upload: Upload[_Made]) -> _Made:
        """Send rows in as many calls as they need."""
        with upload:
            for call in upload.calls():
                with upload.sending():
                    upload.made = await self.send(call)
            return upload.result()

    async def _until(
        self,
        call: Call[_Answer],
        is_over: Callable[[_Answer], bool],
        looking: Looking,
        poll_s: float,
    ) -> _Answer:
        """Look again and again, over failures that may pass, and return the answer that ends it."""
        while True:
            with looking:
                answer = await self.send(call)
            if not looking.is_silent and is_over(answer):
                return answer
            await asyncio.sleep(poll_s)

    async def _iterate(
        self, page_after: Callable[[str | None], Call[CursorPage[_Item_co]]]
    ) -> AsyncIterator[_Item_co]:
        cursor: str | None = None
        while True:
            page = await self.send(page_after(cursor))
            for item in page.data:
                yield item
            cursor = page.next_cursor if page.data and page.has_more else None
            if cursor is None:
                return

    async def _collect_records(
        self,
        page_from: Callable[[int, int], Call[Page[JobRecord]]],
        limit: int | None,
    ) -> RecordList:
        """Return records of pages, each built of an offset and a size, up to a limit."""
        records = RecordList()
        while limit is None or len(records) < limit:
            size = MAX_RECORDS if limit is None else min(limit - len(records), MAX_RECORDS)
            page = await self.send(page_from(len(records), size))
            records.extend(page.data)
            if not page.data or not page.has_more:
                break
        return records


class AsyncJobResource(AsyncResource, Generic[Job_]):
    """The calls of a client about one kind of job."""

    #: Set by each kind.
    _kind: Kind[Job_]
    _look: Callable[[str], Call[Job_]]

    async def wait(
        self,
        job: str | Job_,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> Job_:
        """Wait until a job has ended, and return it; a restart of the server ends no wait.

        One of labeling is waited for until its labels are ready. ``timeout_s`` is without end when
        left out, though a server that was gone for a minute is an error. ``poll_s`` is the seconds
        between two looks.

        Raises
        ------
        steelyard.client.NoAnswerInTimeError
            When it has not ended in time; it goes on.
        """
        job_id = job if isinstance(job, str) else job.id
        looking = Looking(timeout_s, was_answered=not isinstance(job, str))
        with progress_bar(self._kind.title, is_shown=progress) as show:
            following = Following(self._kind, show, timeout_s)
            return await self._until(self._look(job_id), following.has_ended, looking, poll_s)
