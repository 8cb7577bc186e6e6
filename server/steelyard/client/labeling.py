"""``client.labeling``: rows labelled by other models, and datasets of those that are accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from steelyard.client import labeling_calls as calls
from steelyard.client.calls import Call
from steelyard.client.methods import Mode, iterates, method, pages, uploads
from steelyard.client.resource import JobResource
from steelyard.client.uploads import queries_to_label
from steelyard.labeling.wire import LABELING, LabelingJob, LabelingResult, SourceRow

#: Rows of a page.
_PAGE = 200


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
        page_at = partial(calls.source_rows_page, source_id, limit=_PAGE)
        async for row in self._items(page_at):
            yield row

    @iterates
    async def results(self, job_id: str) -> AsyncIterator[LabelingResult]:
        """Iterate over the rows of a job with its teachers' answers."""
        page_at = partial(calls.results_page, job_id, limit=_PAGE)
        async for result in self._items(page_at):
            yield result

    async def _items(self, page_at: Callable[..., Call[Any]]) -> AsyncIterator[Any]:
        """Iterate over a list whose pages begin at an offset."""
        offset = 0
        while True:
            page = await self.answer_to(page_at(offset=offset))
            for item in page.data:
                yield item
            offset += len(page.data)
            if not page.data or not page.has_more:
                return
