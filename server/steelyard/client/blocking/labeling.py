"""``client.labeling``: rows labelled by other models, and datasets of those that are accepted."""

# Made of asynchronous/labeling.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator

from steelyard.client import labeling_calls as calls
from steelyard.client.blocking.resource import JobResource, pages, uploads
from steelyard.client.calls import blocking_method as _method
from steelyard.client.uploads import queries_to_label
from steelyard.labeling.wire import LABELING, LabelingJob, LabelingResult, SourceRow


class Labeling(JobResource[LabelingJob]):
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

    def source_rows(self, source_id: str) -> Iterator[SourceRow]:
        """Iterate over the queries of a source."""
        offset = 0
        while True:
            page = self.send(calls.source_rows_page(source_id, offset=offset, limit=200))
            yield from page.data
            offset += len(page.data)
            if not page.data or not page.has_more:
                return

    def results(self, job_id: str) -> Iterator[LabelingResult]:
        """Iterate over the rows of a job with its teachers' answers."""
        offset = 0
        while True:
            page = self.send(calls.results_page(job_id, offset=offset, limit=200))
            yield from page.data
            offset += len(page.data)
            if not page.data or not page.has_more:
                return
