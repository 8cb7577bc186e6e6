"""The list of jobs of all kinds, which each kind reads of its own table."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row

from steelyard.caller import Caller
from steelyard.datasets.store import dataset_names
from steelyard.errors import InvalidRequestError
from steelyard.house import House
from steelyard.job_frame.queue import JobQueue
from steelyard.storage.pages import unknown_cursor
from steelyard.wire.jobs import AllJobsQuery, JobSummary, JobSummaryPage

_Queue = JobQueue[Any, Any]


class AllJobs:
    """The jobs of every account, of all kinds."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def page(self, caller: Caller, query: AllJobsQuery) -> JobSummaryPage:
        """Return a page of the account's jobs, the newest first."""
        every: list[_Queue] = [self._house.get(queue) for queue in self._house.queues]
        queues = _of_kinds(every, query.kind)

        def work(connection: Connection) -> JobSummaryPage:
            last = _find(connection, caller.account_id, every, query.cursor)
            rows: list[tuple[Row[Any], _Queue]] = []
            has_more = False
            for queue in queues:
                page = queue.jobs.page(
                    connection,
                    caller.account_id,
                    statuses=query.status,
                    dataset_id=query.dataset_id,
                    limit=query.limit,
                    before=last,
                )
                rows += [(row, queue) for row in page.rows]
                has_more |= page.next_cursor is not None
            rows.sort(key=lambda pair: (pair[0].created_at, pair[0].id), reverse=True)
            data = _summaries(connection, caller.account_id, rows[: query.limit])
            has_more |= len(rows) > query.limit
            cursor = data[-1].id if has_more else None
            return JobSummaryPage(data=data, has_more=has_more, next_cursor=cursor)

        return await self._house.state.read(work)


def _of_kinds(queues: list[_Queue], kinds: list[str]) -> list[_Queue]:
    known = {queue.jobs.noun.kind: queue for queue in queues}
    for kind in kinds:
        if kind not in known:
            message = f"kind is {kind!r}; jobs are {', '.join(known)}."
            raise InvalidRequestError.at(("query", "kind"), message, "not_allowed")
    return [queue for kind, queue in known.items() if not kinds or kind in kinds]


def _find(
    connection: Connection, account_id: str, queues: list[_Queue], cursor: str | None
) -> Row[Any] | None:
    if cursor is None:
        return None
    every = (queue.jobs.find(connection, cursor, account_id) for queue in queues)
    row = next((row for row in every if row is not None), None)
    if row is None:
        raise unknown_cursor()
    return row


def _summaries(
    connection: Connection, account_id: str, rows: list[tuple[Row[Any], _Queue]]
) -> list[JobSummary]:
    summaries: dict[str, JobSummary] = {}
    for queue in {id(queue): queue for _, queue in rows}.values():
        jobs = queue.items(connection, [row for row, own in rows if own is queue])
        summaries.update({job.id: job.summary for job in jobs})
    ids = {job.dataset_id for job in summaries.values() if job.dataset_id is not None}
    names = dataset_names(connection, account_id, ids)
    return [
        replace(summaries[row.id], dataset=names.get(summaries[row.id].dataset_id or ""))
        for row, _ in rows
    ]
