"""``client.labeling``: rows labelled by other models, and datasets of those that are accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from steelyard.client import labeling_calls as calls
from steelyard.client.asynchronous.resource import AsyncJobResource
from steelyard.client.calls import async_method as _method
from steelyard.client.row_sources import OnRefused, Rows
from steelyard.client.uploads import SourceUpload
from steelyard.client.waiting import LABELING
from steelyard.labeling.wire import LabelingJob, LabelingResult, LabelingSource, SourceRow


class AsyncLabeling(AsyncJobResource[LabelingJob]):
    """Rows labelled by other models: ``client.labeling``."""

    _kind = LABELING
    _look = staticmethod(calls.get)
    teachers = _method(calls.teachers)
    source = _method(calls.source)
    source_rows_page = _method(calls.source_rows_page)
    delete_source = _method(calls.delete_source)
    create = _method(calls.create)
    get = _method(calls.get)
    results_page = _method(calls.results_page)
    reviewed = _method(calls.reviewed)
    cancel = _method(calls.cancel)
    discard = _method(calls.discard)
    finalize = _method(calls.finalize)

    async def upload(
        self,
        name: str,
        rows: Rows,
        *,
        on_refused: OnRefused | None = None,
        idempotency_key: str | None = None,
    ) -> LabelingSource:
        """Upload queries to be labelled: ``POST /v1/labeling/sources``.

        Parameters
        ----------
        rows : path, bytes or iterable of mappings
            JSON Lines or rows, each with ``context`` and, unless the job gives them, ``decisions``.
        on_refused : callable, optional
            Called with ``"rows"``, its line from 0 and the problem of each row that the server
            refuses; the other rows are kept.
        """
        sent = SourceUpload(name, rows, on_refused=on_refused, idempotency_key=idempotency_key)
        return await self._upload(sent)

    def sources(self, *, page_size: int = 200) -> AsyncIterator[LabelingSource]:
        """Iterate over uploaded sources, newest first."""
        return self._iterate(lambda cursor: calls.source_page(limit=page_size, cursor=cursor))

    async def source_rows(self, source_id: str) -> AsyncIterator[SourceRow]:
        """Iterate over the queries of a source."""
        offset = 0
        while True:
            page = await self.send(calls.source_rows_page(source_id, offset=offset, limit=200))
            for item in page.data:
                yield item
            offset += len(page.data)
            if not page.data or not page.has_more:
                return

    def list(
        self, *, status: str | Sequence[str] | None = None, page_size: int = 200
    ) -> AsyncIterator[LabelingJob]:
        """Iterate over labeling jobs, or those of a status, newest first."""
        return self._iterate(
            lambda cursor: calls.page(status=status, limit=page_size, cursor=cursor)
        )

    async def results(self, job_id: str) -> AsyncIterator[LabelingResult]:
        """Iterate over the rows of a job with what teachers said of them."""
        offset = 0
        while True:
            page = await self.send(calls.results_page(job_id, offset=offset, limit=200))
            for item in page.data:
                yield item
            offset += len(page.data)
            if not page.data or not page.has_more:
                return
