"""``client.jobs``, the fine-tunes of families."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from steelyard.client import job_calls as calls
from steelyard.client.answers import RecordList
from steelyard.client.asynchronous.resource import AsyncJobResource
from steelyard.client.calls import async_method as _method
from steelyard.client.waiting import FINE_TUNES
from steelyard.evaluations.wire import RecordGroup
from steelyard.families.fine_tune_wire import Job


class AsyncJobs(AsyncJobResource[Job]):
    """Fine-tunes, as ``families.create`` and ``families.continue_`` queue them: ``client.jobs``.

    One that succeeded need not have made a model: look at ``outcome`` and ``gate``.
    """

    _kind = FINE_TUNES
    _look = staticmethod(calls.get)
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

    follow = AsyncJobResource[Job].wait
