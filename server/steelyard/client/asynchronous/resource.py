"""The base of a client's parts: sends their calls, and reads pages."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from steelyard.client.answers import RecordList
from steelyard.client.calls import Call, CursorPage, describe_method, describe_pages
from steelyard.client.progress import progress_bar
from steelyard.client.saving import AsyncSaver, Saving
from steelyard.client.uploads import UploadCalls
from steelyard.client.waiting import Following, Job_, Looking, part_of
from steelyard.client.walking import RecordWalk
from steelyard.datasets.wire import Dataset
from steelyard.labeling.wire import LabelingSource
from steelyard.wire.jobs import JobNoun

if TYPE_CHECKING:
    from steelyard.client.asynchronous.client import AsyncClient

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_Made = TypeVar("_Made", bound=Dataset | LabelingSource)
_Item = TypeVar("_Item")


class AsyncResource:
    """The calls of a client about one subject."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)

    async def save_export(self, saving: Saving) -> Path:
        """Write an export to the disk through the client."""
        return await self._client.save_export(saving)

    async def send_rows(self, upload: UploadCalls[_Made]) -> _Made:
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


def pages(
    build: Callable[_Arguments, Call[CursorPage[_Item]]],
) -> Callable[Concatenate[AsyncResource, _Arguments], AsyncIterator[_Item]]:
    """Return the method that iterates over a list, whose pages are asked for as they are needed.

    Its parameters and help are those of the call; ``cursor`` is where it begins.
    """

    @functools.wraps(build)
    async def method(
        self: AsyncResource, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> AsyncIterator[_Item]:
        while True:
            page = await self.send(build(*args, **kwargs))
            for item in page.data:
                yield item
            if not page.data or not page.has_more or page.next_cursor is None:
                return
            kwargs["cursor"] = page.next_cursor

    describe_pages(method, build, "AsyncIterator")
    return method


def uploads(
    build: Callable[_Arguments, UploadCalls[_Made]],
) -> Callable[Concatenate[AsyncResource, _Arguments], Awaitable[_Made]]:
    """Return the method that sends rows in as many calls as they need; its help is the upload's."""

    @functools.wraps(build)
    async def method(
        self: AsyncResource, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Made:
        return await self.send_rows(build(*args, **kwargs))

    describe_method(method, build)
    return method


def collects(
    build: Callable[_Arguments, RecordWalk],
) -> Callable[Concatenate[AsyncResource, _Arguments], Awaitable[RecordList]]:
    """Return the method that reads scored decisions, page by page; its help is the walk's."""

    @functools.wraps(build)
    async def method(
        self: AsyncResource, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> RecordList:
        walk = build(*args, **kwargs)
        while not walk.is_over:
            walk.take(await self.send(walk.call()))
        return walk.records

    describe_method(method, build, "RecordList")
    return method


def saves(
    build: Callable[_Arguments, Saving],
) -> Callable[Concatenate[AsyncSaver, _Arguments], Awaitable[Path]]:
    """Return the method that writes an export to the disk; its help is the export's."""

    @functools.wraps(build)
    async def method(
        self: AsyncSaver, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Path:
        return await self.save_export(build(*args, **kwargs))

    describe_method(method, build, "Path")
    return method


class AsyncJobResource(AsyncResource, Generic[Job_]):
    """The calls of a client about one kind of job."""

    #: Set by each kind.
    noun: ClassVar[JobNoun]
    look: Callable[[str], Call[Job_]]

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
        kind = part_of(self._client, self, job_id)
        looking = Looking(timeout_s, was_answered=not isinstance(job, str))
        with progress_bar(kind.noun.title, is_shown=progress) as show:
            following: Following[Job_] = Following(kind.noun, show, timeout_s)
            return await self._until(kind.look(job_id), following.has_ended, looking, poll_s)
