"""Pages with more than items: the next page, and the content of each."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.client.answers import RecordList
from steelyard.client.calls import Call, Page
from steelyard.datasets.wire import Dataset, DatasetPage
from steelyard.evaluations.wire import MAX_RECORDS, JobRecord


class DatasetWalk:
    """Which datasets of a page are given, and the ``cursor`` of the page that is asked for next.

    The list is in the order of last use, and a cursor names a dataset, whose place moves when it is
    used: so datasets come again, and others may be passed over. Each is given once; once the list has
    ended, moved datasets are looked for at its front. Datasets made meanwhile are not given: a loop
    that makes one for each would never end.
    """

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.is_over = False
        self._given: set[str] = set()
        self._began: float | None = None
        self._is_first_round = True
        self._has_given = False

    def take(self, page: DatasetPage) -> list[Dataset]:
        """Return those of a page that are to be given."""
        if self._began is None:
            # The first was used last, by the server's clock: all that are there are no newer.
            self._began = max((_used_at(item) for item in page.data), default=0.0)
        began = self._began
        new = [
            item for item in page.data if item.id not in self._given and _began_at(item) <= began
        ]
        self._given.update(dataset.id for dataset in new)
        self._has_given |= bool(new)
        # What was not used meanwhile kept its order, and came in the first round.
        has_unmoved = any(_used_at(item) <= began for item in page.data)
        is_last = not page.data or not page.has_more or page.next_cursor is None
        if not is_last and (self._is_first_round or not has_unmoved):
            self.cursor = page.next_cursor
            return new
        is_whole = self.cursor is None and is_last
        self.is_over = is_whole or not self._has_given
        self.cursor, self._is_first_round, self._has_given = None, False, False
        return new


class RecordWalk:
    """Scored decisions of pages, each asked for by an offset and a size, up to a limit."""

    def __init__(
        self, page_from: Callable[[int, int], Call[Page[JobRecord]]], limit: int | None
    ) -> None:
        self._page_from, self._limit = page_from, limit
        self.records = RecordList()
        self.is_over = limit is not None and limit <= 0

    def call(self) -> Call[Page[JobRecord]]:
        """Return the call for the next page."""
        n_read = len(self.records)
        left = MAX_RECORDS if self._limit is None else self._limit - n_read
        return self._page_from(n_read, min(left, MAX_RECORDS))

    def take(self, page: Page[JobRecord]) -> None:
        """Add the records of a page."""
        self.records.extend(page.data)
        is_full = self._limit is not None and len(self.records) >= self._limit
        self.is_over = is_full or not page.data or not page.has_more


def _used_at(dataset: Dataset) -> float:
    return dataset.created_at if dataset.used_at is None else dataset.used_at


def _began_at(dataset: Dataset) -> float:
    """Return when a dataset was made, or when its labeling job was: it is listed by that."""
    return min(dataset.created_at, _used_at(dataset))
