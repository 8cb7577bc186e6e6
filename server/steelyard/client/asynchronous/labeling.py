"""``client.labeling``: rows labelled by other models, and datasets of those that are accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator

from steelyard.client import labeling_calls as calls
from steelyard.client.asynchronous.resource import AsyncJobResource, pages, uploads
from steelyard.client.calls import async_method as _method
from steelyard.client.uploads import queries_to_label
from steelyard.labeling.wire import LABELING, LabelingJob, LabelingResult, SourceRow


class AsyncLabeling(AsyncJobResource[LabelingJob]):
    """Rows labelled by other models: ``client.labeling``."""

    noun = LABELING
    look = staticmethod(calls.get)
    teachers = _method(calls.teachers)
    upload = uploads(queries_to_label)
    sources = pages(calls.source_page)
    source = _method(calls.source)
    source_rows_page = _method(calls.source_rows_page)
    delete_source = _method(calls.delete_source)
    list = pages(calls.page)
    create = _method(calls.create)
    get = _method(calls.get)
    results_page = _method(calls.results_page)
    reviewed = _method(calls.reviewed)
    cancel = _method(calls.cancel)
    discard = _method(calls.discard)
    finalize = _method(calls.finalize)

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

    async def results(self, job_id: str) -> AsyncIterator[LabelingResult]:
        """Iterate over the rows of a job with its teachers' answers."""
        offset = 0
        while True:
            page = await self.send(calls.results_page(job_id, offset=offset, limit=200))
            for item in page.data:
                yield item
            offset += len(page.data)
            if not page.data or not page.has_more:
                return
