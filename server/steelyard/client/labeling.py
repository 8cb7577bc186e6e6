"""``client.labeling``: rows labelled by other models, and datasets of those that are accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator

from steelyard.client import labeling_calls as calls
from steelyard.client.methods import Mode, iterates, method, pages, uploads
from steelyard.client.resource import JobResource
from steelyard.client.uploads import queries_to_label
from steelyard.labeling.wire import LABELING, LabelingJob, LabelingResult, SourceRow


class LabelingResource(JobResource[Mode, LabelingJob]):
    """Rows labelled by other models: ``client.labeling``."""

    noun = LABELING
    look = staticmethod(calls.get)
    teachers = method(calls.teachers)
    upload = uploads(queries_to_label)
    sources = pages(calls.source_page)
    source = method(calls.source)
    source_rows_page = method(calls.source_rows_page)
    delete_source = method(calls.delete_source)
    list = pages(calls.page)
    create = method(calls.create)
    get = method(calls.get)
    results_page = method(calls.results_page)
    reviewed = method(calls.reviewed)
    cancel = method(calls.cancel)
    discard = method(calls.discard)
    finalize = method(calls.finalize)

    @iterates
    async def source_rows(self, source_id: str) -> AsyncIterator[SourceRow]:
        """Iterate over the queries of a source."""
        offset = 0
        while True:
            page = await self.answer_to(calls.source_rows_page(source_id, offset=offset, limit=200))
            for item in page.data:
                yield item
            offset += len(page.data)
            if not page.data or not page.has_more:
                return

    @iterates
    async def results(self, job_id: str) -> AsyncIterator[LabelingResult]:
        """Iterate over the rows of a job with its teachers' answers."""
        offset = 0
        while True:
            page = await self.answer_to(calls.results_page(job_id, offset=offset, limit=200))
            for item in page.data:
                yield item
            offset += len(page.data)
            if not page.data or not page.has_more:
                return
