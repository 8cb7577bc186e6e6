"""The client whose calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar, Unpack

import httpx
from tenacity import AsyncRetrying

from steelyard.client import dataset_calls, evaluation_calls, family_calls, log_calls, routes
from steelyard.client.answers import DatasetAnswer
from steelyard.client.calls import Call
from steelyard.client.drafts import AsyncDrafts
from steelyard.client.evaluation_answers import EvaluationAnswer, RecordList
from steelyard.client.evaluation_calls import RecordFilters
from steelyard.client.exchange import Compression, Exchange
from steelyard.client.families import AsyncFamilies
from steelyard.client.jobs import AsyncJobs
from steelyard.client.methods import async_method as _method
from steelyard.client.options import ClientOptions
from steelyard.client.progress import progress_bar
from steelyard.client.transport import http_arguments
from steelyard.client.waiting import EvaluationFollowing, Looking, look_until_async
from steelyard.client.walking import DatasetWalk
from steelyard.wire.account import ApiKey
from steelyard.wire.evaluations import MAX_RECORDS, Evaluation

_Answer = TypeVar("_Answer")


class AsyncClient:
    """An asynchronous client of a Steelyard server; for one event loop.

    ``steelyard.connect_async`` makes one. Every method raises the class of ``steelyard.errors``
    that the server refused with, or, where no server answered, one of
    ``steelyard.client.failures``.

    Parameters
    ----------
    options : ClientOptions
        Where it calls, with which key, how long and how often.
    transport : httpx.AsyncBaseTransport, optional
        Carries the bytes instead of httpx's own.
    sleep : callable, optional
        Awaited with the seconds between attempts.
    """

    def __init__(
        self,
        options: ClientOptions,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._options = options
        self._compression = Compression(options.gzip_over)
        self._sleep = sleep
        self._http = httpx.AsyncClient(transport=transport, **http_arguments(options))
        self.models = AsyncModels(self)
        self.account = AsyncAccount(self)
        self.evaluations = AsyncEvaluations(self)
        self.datasets = AsyncDatasets(self)
        self.families = AsyncFamilies(self)
        self.jobs = AsyncJobs(self)
        self.drafts = AsyncDrafts(self)

    decide = _method(routes.decide)
    estimate = _method(routes.estimate)
    playground = _method(routes.playground)
    lint = _method(routes.lint)
    feedback = _method(routes.feedback)
    decisions = _method(routes.decisions)
    systemone = _method(routes.systemone)
    systemone_estimate = _method(routes.systemone_estimate)
    translate = _method(routes.translate)
    capabilities = _method(routes.capabilities)
    recipes = _method(routes.recipes)
    health = _method(routes.health)
    ready = _method(routes.ready)
    decision_log = _method(log_calls.decision_log)
    decision_summary = _method(log_calls.decision_summary)
    stored_decision = _method(log_calls.stored_decision)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._options.url

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call, and again as long as a failure may pass and there is time.

        Raises
        ------
        steelyard.errors.SteelyardError
            The last attempt's.
        """
        exchange = Exchange(call, self._options, self._compression)
        attempts = AsyncRetrying(
            retry=exchange.is_worth_repeating,
            wait=exchange.wait_s,
            stop=exchange.is_over,
            sleep=self._sleep,
            before_sleep=exchange.tell_wait,
            reraise=True,
        )
        return await attempts(self._attempt, exchange)

    async def close(self) -> None:
        """Close the connections; the client cannot be used after it."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient(url={self.url!r})"

    async def _attempt(self, exchange: Exchange[_Answer]) -> _Answer:
        try:
            async with asyncio.timeout(exchange.bound_s()):
                response = await self._http.request(**exchange.request())
                if exchange.must_send_plain(response):
                    response = await self._http.request(**exchange.request())
        except TimeoutError as error:
            raise exchange.lost(httpx.ReadTimeout("")) from error
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        return exchange.answer(response)


class AsyncModels:
    """The models that a client's account can ask: ``client.models``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    list = _method(routes.list_models)
    get = _method(routes.get_model)
    ready = _method(routes.get_model_ready)
    switch = _method(family_calls.switch_model)
    keep_warm = _method(family_calls.keep_model_warm)
    delete = _method(family_calls.delete_model)

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)


class AsyncAccount:
    """The account of a client's key: ``client.account``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    get = _method(routes.get_account)

    async def keys(
        self, *, revoked: bool | None = None, page_size: int = 200
    ) -> AsyncIterator[ApiKey]:
        """Iterate over the account's keys, newest first; pages are asked for as they are needed.

        Parameters
        ----------
        revoked : bool, optional
            Only the revoked, or only the others; both when left out.
        page_size : int, default 200
            Keys of a page; 1 to 200.
        """
        cursor: str | None = None
        while True:
            page = await self.send(
                routes.list_account_keys(revoked=revoked, limit=page_size, cursor=cursor)
            )
            for key in page.data:
                yield key
            cursor = routes.next_cursor(page)
            if cursor is None:
                return

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)


class AsyncDatasets:
    """The datasets of a client's account: ``client.datasets``.

    ``create`` and ``add_rows`` send JSON Lines in one call; the blocking client takes frames and
    files of any size.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    create = _method(dataset_calls.create_dataset)
    add_rows = _method(dataset_calls.add_rows)
    check = _method(dataset_calls.check_rows)
    from_feedback = _method(dataset_calls.from_feedback)
    list = _method(dataset_calls.list_datasets)
    get = _method(dataset_calls.get_dataset)
    rename = _method(dataset_calls.rename_dataset)
    delete = _method(dataset_calls.delete_dataset)
    restore = _method(dataset_calls.restore_dataset)
    versions = _method(dataset_calls.list_versions)
    labels_to_check = _method(dataset_calls.list_labels_to_check)
    rows = _method(dataset_calls.page_rows)
    download = _method(dataset_calls.download_rows)
    export = _method(dataset_calls.export_rows)
    search = _method(dataset_calls.search_rows)
    similar = _method(dataset_calls.similar_rows)
    facets = _method(dataset_calls.facets_of)
    diff = _method(dataset_calls.diff_versions)

    async def iterate(
        self, *, archived: bool = False, page_size: int = 200
    ) -> AsyncIterator[DatasetAnswer]:
        """Iterate over datasets, most recently used first; as the blocking client's."""
        walk = DatasetWalk()
        while not walk.is_over:
            page = await self.send(
                dataset_calls.list_datasets(archived=archived, limit=page_size, cursor=walk.cursor)
            )
            for one in walk.take(page):
                yield one

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)


class AsyncEvaluations:
    """Models scored on the evaluation rows of datasets: ``client.evaluations``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    create = _method(evaluation_calls.create)
    get = _method(evaluation_calls.get)
    cancel = _method(evaluation_calls.cancel)
    retry = _method(evaluation_calls.retry)
    detail = _method(evaluation_calls.detail)
    records_page = _method(evaluation_calls.records_page)
    compare = _method(evaluation_calls.compare)
    try_policy = _method(evaluation_calls.try_policy)
    cost_curve = _method(evaluation_calls.cost_curve)

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
                evaluation_calls.page(dataset_id, status=status, limit=page_size, cursor=cursor)
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
        """Give scored decisions of an evaluation that succeeded.

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
                evaluation_calls.records_page(
                    evaluation_id, offset=len(found), limit=size, **filters
                )
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
    ) -> EvaluationAnswer:
        """Wait until an evaluation has ended, and give it; a restart of the server ends no wait.

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
            return await look_until_async(
                lambda: self.get(evaluation_id), following.has_ended, looking, poll_s
            )

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)
