"""``client.jobs``, the fine-tunes of families."""

# Made of asynchronous/jobs.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from steelyard.client import job_calls as calls
from steelyard.client.answers import RecordList
from steelyard.client.blocking.looking import look_until
from steelyard.client.calls import Call
from steelyard.client.methods import blocking_method as _method
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import JobFollowing, Looking
from steelyard.evaluations.wire import MAX_RECORDS, RecordGroup
from steelyard.families.fine_tuning.wire import Job

if TYPE_CHECKING:
    from steelyard.client.blocking.client import Client

_Answer = TypeVar("_Answer")


class Jobs:
    """Fine-tunes, as ``families.create`` and ``families.continue_`` queue them: ``client.jobs``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    get = _method(calls.get)
    events = _method(calls.events)
    cancel = _method(calls.cancel)

    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        dataset_id: str | None = None,
        page_size: int = 200,
    ) -> Iterator[Job]:
        """Iterate over fine-tunes, newest first; pages are asked for as they are needed.

        Parameters
        ----------
        status : str or sequence of str, optional
            Only those with one of these.
        dataset_id : str, optional
            Only those that train on this dataset.
        page_size : int, default 200
            Fine-tunes of a page; 1 to 200.
        """
        cursor: str | None = None
        while True:
            page = self.send(
                calls.page(status=status, dataset_id=dataset_id, limit=page_size, cursor=cursor)
            )
            yield from page.data
            cursor = page.next_cursor if page.data and page.has_more else None
            if cursor is None:
                return

    def records(
        self, job_id: str, *, group: RecordGroup = "adapted", limit: int | None = None
    ) -> RecordList:
        """Return the held-out decisions of a fine-tune as one model scored them.

        Parameters
        ----------
        job_id : str
            Id of one that has ended.
        group : {"adapted", "base", "parent"}
            Whose answers: its model's, the base's, or the parent's.
        limit : int, optional
            The most records; all when left out.
        """
        found = RecordList()
        while limit is None or len(found) < limit:
            size = MAX_RECORDS if limit is None else min(limit - len(found), MAX_RECORDS)
            page = self.send(calls.records_page(job_id, group=group, offset=len(found), limit=size))
            found.extend(page.data)
            if not page.data or not page.has_more:
                break
        return found

    def follow(
        self,
        job: str | Job,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> Job:
        """Wait until a fine-tune has ended, and return it; a restart of the server ends no wait.

        One that succeeded need not have made a model: look at ``outcome`` and ``gate``.

        Parameters
        ----------
        job : str or Job
            It, or its id.
        timeout_s : float, optional
            Seconds to wait at most; without end when left out, though a server that was gone for a
            minute is told.
        poll_s : float, default 0.5
            Seconds between two looks.
        progress : bool, default True
            Whether to show a bar, in a notebook or on a terminal.

        Raises
        ------
        steelyard.client.NoAnswerInTimeError
            When it has not ended in time; it goes on.
        """
        job_id = job if isinstance(job, str) else job.id
        looking = Looking(timeout_s, was_answered=not isinstance(job, str))
        with progress_bar("Fine-tune", is_shown=progress) as show:
            following = JobFollowing(show, timeout_s)
            return look_until(lambda: self.get(job_id), following.has_ended, looking, poll_s)

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return self._client.send(call)
