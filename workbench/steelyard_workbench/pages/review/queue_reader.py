"""The rows of a queue under a filter: fetched ahead, fetched for the table, and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import panel as pn

from steelyard.client import Client
from steelyard.datasets.wire import MAX_PAGE_ROWS
from steelyard.review.wire import Draft, DraftRow, DraftRowPage, Queue, RowNow, Suspects
from steelyard_workbench.kit.problems import Problem, not_loaded, problem_of
from steelyard_workbench.kit.scheduling import until_shown
from steelyard_workbench.kit.tasks import OneAtATime, Poller, Task
from steelyard_workbench.pages.review.rows_ahead import PAGE_ROWS, RowsAhead
from steelyard_workbench.parts.review.row_filter import RowFilter

#: Milliseconds between two looks at how far the search for suspect labels is.
_SUSPECTS_MS = 2000
#: Seconds after the last edit when the queues are counted again: counting reads every row's state,
#: and the counts that an edit changes are known here already.
_QUIET_S = 1.0


class QueueReader:
    """Reads a queue of a draft.

    ``settled`` waits until one's own edits are sent. ``on_seen`` is called with rows that are to be
    shown, also from a thread; it returns how those stand that are shown so from now on.
    """

    def __init__(
        self,
        client: Client,
        draft: Draft,
        queue: Queue,
        row_filter: RowFilter,
        *,
        reviewer: Callable[[], str | None],
        settled: Callable[[], Awaitable[None]],
        on_seen: Callable[[list[DraftRow]], list[RowNow]],
        on_counts: Callable[[dict[str, int]], None],
        on_rows: Callable[[], None],
    ) -> None:
        self._client, self._draft_id = client, draft.id
        self._reviewer, self._settled = reviewer, settled
        self._on_seen, self._on_counts, self._on_rows = on_seen, on_counts, on_rows
        self._poller = Poller(self._look, _SUSPECTS_MS)
        self.queue, self.filter = queue, row_filter
        self.rows = RowsAhead(queue)
        self.revision = draft.revision
        self.suspects: Suspects | None = None
        self.failure: Problem | None = None
        self.filling = OneAtATime(self._fill, on_failure=self._show_failure)
        # The log has what was not foreseen.
        self.count = Task(
            self._count, on_failure=lambda error: problem_of(error, not_loaded("The counts"))
        )
        self.count_in_quiet = Task(self._count_in_quiet)

    def restart(self) -> None:
        """Begin at the start of the queue; it is for the caller to fill."""
        self.filling.drop()
        self.failure = None
        self.rows = RowsAhead(self.queue)

    def stop(self) -> None:
        """Ask no more by itself."""
        self._poller.stop()

    async def fill(self) -> None:
        """Fetch rows ahead, where too few are."""
        if self.rows.is_wanting and await self.filling():
            self.failure = None
            # What comes while the browser takes the page may be lost on its way.
            await until_shown()
            self._on_rows()

    async def _fill(self) -> bool:
        rows = self.rows
        if not rows.rows:
            # A row may be in this queue by an edit of a moment ago.
            await self._settled()
        offset = rows.offset
        while True:
            page = await asyncio.to_thread(self._fetch, offset, PAGE_ROWS)
            self._take(page)
            new = rows.take(page)
            # A row that is here already stays as it is shown, with the edits that were seen.
            self._on_seen(new)
            if new or not page.has_more:
                return True
            offset += PAGE_ROWS

    async def fetch_ahead(self, n_rows: int) -> list[DraftRow]:
        """Return undecided rows from the shown one on, fetched as far as they are missing."""
        rows = self.rows
        while len(undecided := rows.undecided) < n_rows and not rows.is_complete:
            page = await asyncio.to_thread(self._fetch, rows.offset, MAX_PAGE_ROWS)
            self._take(page)
            new = rows.take(page)
            self._on_seen(new)
            if not new:
                break
        return undecided[:n_rows]

    def _show_failure(self, error: Exception) -> None:
        self.failure = problem_of(error, not_loaded("The rows"))
        self._on_rows()

    def fetch_table(self, offset: int, limit: int, order: dict[str, Any] | None) -> DraftRowPage:
        """Fetch a page of the table; it blocks, and runs in a thread."""
        page = self._fetch(offset, limit, order)
        self.revision = max(self.revision, page.revision)
        self._show(page.data)
        return page

    async def fetch_row(self, number: int) -> list[DraftRow]:
        """Fetch the row of a place in the dataset, whichever queues it is in."""
        where = {"type": "index", "at_least": number, "below": number + 1}
        page = await asyncio.to_thread(
            self._client.drafts.rows, self._draft_id, "all", where=where, limit=1
        )
        self._show(page.data)
        return page.data

    async def _count(self) -> None:
        self._take(await asyncio.to_thread(self._fetch, 0, 1))

    async def _count_in_quiet(self) -> None:
        if pn.state.curdoc is not None:
            await asyncio.sleep(_QUIET_S)
        await self.count()

    def _fetch(self, offset: int, limit: int, order: dict[str, Any] | None = None) -> DraftRowPage:
        return self._client.drafts.rows(
            self._draft_id,
            self.queue,
            where=self.filter.where,
            text=self.filter.text,
            order=order,
            offset=offset,
            limit=limit,
            reviewer=self._reviewer(),
        )

    def _show(self, fetched: list[DraftRow]) -> None:
        """Mark rows as seen, and show those of the walk as they were seen."""
        for now in self._on_seen(fetched):
            self.rows.tell(now)

    def _take(self, page: DraftRowPage) -> None:
        self.revision = max(self.revision, page.revision)
        self.suspects = page.suspects
        self._on_counts(dict(page.counts))
        if page.suspects.status == "computing" and self.queue == "suspect":
            self._poller.start()
        else:
            self._poller.stop()

    async def _look(self) -> None:
        if self.queue == "suspect" and not self.rows.rows:
            self.rows = RowsAhead(self.queue)
            await self.fill()
