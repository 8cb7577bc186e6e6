"""``client.evaluations``: models scored on the evaluation rows of datasets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, TypeVar, Unpack

from steelyard.client import evaluation_calls as calls
from steelyard.client.answers import RecordList
from steelyard.client.asynchronous.looking import look_until
from steelyard.client.calls import Call
from steelyard.client.evaluation_calls import RecordFilters
from steelyard.client.methods import async_method as _method
from steelyard.client.progress import progress_bar
from steelyard.client.waiting import EvaluationFollowing, Looking
from steelyard.evaluations.wire import MAX_RECORDS, Evaluation

if TYPE_CHECKING:
    from steelyard.client.asynchronous.client import AsyncClient

_Answer = TypeVar("_Answer")


class AsyncEvaluations:
    """Models scored on the evaluation rows of datasets: ``client.evaluations``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    create = _method(calls.create)
    get = _method(calls.get)
    cancel = _method(calls.cancel)
    retry = _method(calls.retry)
    detail = _method(calls.detail)
    records_page = _method(calls.records_page)
    compare = _method(calls.compare)
    try_policy = _method(calls.try_policy)
    cost_curve = _method(calls.cost_curve)

    async def list(
        self,
        dataset_id: str,
        *,
        status: str | Sequence[str] | None = None,
        page_size: int = 200,
    ) -> AsyncIterator[Evaluation]:
        """Iterate over a dataset's evaluations, newest first.

        Parameters
        ----------
        dataset_id : str
            The dataset's id.
        status : str or sequence of str, optional
            Only those with one of these.
        page_size : int, default 200
            Evaluations of a page; 1 to 200.
        """
        cursor: str | None = None
        while True:
            page = await self.send(
                calls.page(dataset_id, status=status, limit=page_size, cursor=cursor)
            )
            for one in page.data:
                yield one
            cursor = page.next_cursor if page.data and page.has_more else None
            if cursor is None:
                return

    async def records(
        self,
        evaluation_id: str,
        *,
        limit: int | None = None,
        **filters: Unpack[RecordFilters],
    ) -> RecordList:
        """Return scored decisions of an evaluation that succeeded.

        Parameters
        ----------
        evaluation_id : str
            Its id.
        limit : int, optional
            The most records; all when left out.
        **filters
            Which of them, and in what order: ``decision``, ``wrong``, ``target``, ``top``,
            ``p_from``, ``p_to``, ``slice_by``, ``slice``, ``contexts``, ``order``, ``context``.
        """
        found = RecordList()
        while limit is None or len(found) < limit:
            size = MAX_RECORDS if limit is None else min(limit - len(found), MAX_RECORDS)
            page = await self.send(
                calls.records_page(evaluation_id, offset=len(found), limit=size, **filters)
            )
            found.extend(page.data)
            if not page.data or not page.has_more:
                break
        return found

    async def wait(
        self,
        evaluation: str | Evaluation,
        *,
        timeout_s: float | None = None,
        poll_s: float = 0.5,
        progress: bool = True,
    ) -> Evaluation:
        """Wait until an evaluation has ended, and return it; a restart of the server ends no wait.

        Parameters
        ----------
        evaluation : str or Evaluation
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
        evaluation_id = evaluation if isinstance(evaluation, str) else evaluation.id
        looking = Looking(timeout_s, was_answered=not isinstance(evaluation, str))
        with progress_bar("Evaluation", is_shown=progress) as show:
            following = EvaluationFollowing(show, timeout_s)
            return await look_until(
                lambda: self.get(evaluation_id), following.has_ended, looking, poll_s
            )

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)
