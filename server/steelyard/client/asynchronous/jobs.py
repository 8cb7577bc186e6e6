"""``client.jobs``, the fine-tunes of families."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from steelyard.client import job_calls as calls
from steelyard.client.answers import RecordList
from steelyard.client.asynchronous.resource import AsyncResource
from steelyard.client.calls import async_method as _method
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import JobFollowing, Looking
from steelyard.evaluations.wire import RecordGroup
from steelyard.families.fine_tune_wire import Job


class AsyncJobs(AsyncResource):
    """Fine-tunes, as ``families.create`` and ``families.continue_`` queue them: ``client.jobs``."""

    get = _method(calls.get)
    events = _method(calls.events)
    cancel = _method(calls.cancel)

    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        dataset_id: str | None = None,
        page_size: int = 200,
    ) -> AsyncIterator[Job]:
        """Iterate over fine-tunes, or those of a status or a dataset, newest first."""
        return self._iterate(
            lambda cursor: calls.page(
                status=status, dataset_id=dataset_id, limit=page_size, cursor=cursor
            )
        )

    async def records(
        self, job_id: str, *, group: RecordGroup = "adapted", limit: int | None = None
    ) -> RecordList:
        """Return the held-out decisions of an ended fine-tune as one model scored them.

        Parameters
        ----------
        group : {"adapted", "base", "parent"}
            Whose answers: its model's, the base's, or the parent's.
        """
        return await self._collect_records(
            lambda offset, size: calls.records_page(job_id, group=group, offset=offset, limit=size),
            limit,
        )

    async def follow(
        self,
        job: str | Job,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> Job:
        """Wait until a fine-tune has ended, and return it; a restart of the server ends no wait.

        One that succeeded need not have made a model: look at ``outcome`` and ``gate``.

        ``timeout_s`` is without end when left out, though a server that was gone for a minute is
        an error. ``poll_s`` is the seconds between two looks.

        Raises
        ------
        steelyard.client.NoAnswerInTimeError
            When it has not ended in time; it goes on.
        """
        job_id = job if isinstance(job, str) else job.id
        looking = Looking(timeout_s, was_answered=not isinstance(job, str))
        with progress_bar("Fine-tune", is_shown=progress) as show:
            following = JobFollowing(show, timeout_s)
            return await self._until(calls.get(job_id), following.has_ended, looking, poll_s)
