"""The client whose calls wait for their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, Unpack

import httpx
from tenacity import Retrying

from steelyard.client import dataset_calls, evaluation_calls, family_calls, log_calls, routes
from steelyard.client.calls import Call
from steelyard.client.datasets import DatasetMethods
from steelyard.client.drafts import Drafts
from steelyard.client.evaluation_answers import EvaluationAnswer, RecordList
from steelyard.client.evaluation_calls import RecordFilters
from steelyard.client.exchange import Compression, Exchange
from steelyard.client.families import Families
from steelyard.client.jobs import Jobs
from steelyard.client.methods import blocking_method as _method
from steelyard.client.options import ClientOptions
from steelyard.client.progress import progress_bar
from steelyard.client.transport import BoundedStream, http_arguments
from steelyard.client.waiting import EvaluationFollowing, Looking, look_until
from steelyard.wire.account import ApiKey
from steelyard.wire.evaluations import MAX_RECORDS, Evaluation

_Answer = TypeVar("_Answer")


class Client:
    """A blocking client of a Steelyard server; safe to use from several threads.

    ``steelyard.connect`` makes one. Every method raises the class of ``steelyard.errors`` that the
    server refused with, or, where no server answered, one of ``steelyard.client.failures``.

    Parameters
    ----------
    options : ClientOptions
        Where it calls, with which key, how long and how often.
    transport : httpx.BaseTransport, optional
        Carries the bytes instead of httpx's own.
    sleep : callable, optional
        Waits the seconds between attempts.

    Examples
    --------
    >>> with Client(ClientOptions("http://127.0.0.1:8420")) as client:
    ...     client.health()  # doctest: +SKIP
    """

    def __init__(
        self,
        options: ClientOptions,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._compression = Compression(options.gzip_over)
        self._sleep = sleep
        self._http = httpx.Client(transport=transport, **http_arguments(options))
        self.models = Models(self)
        self.account = Account(self)
        self.evaluations = Evaluations(self)
        self.datasets = Datasets(self)
        self.families = Families(self)
        self.jobs = Jobs(self)
        self.drafts = Drafts(self)

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

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call, and again as long as a failure may pass and there is time.

        Raises
        ------
        steelyard.errors.SteelyardError
            The last attempt's.
        """
        exchange = Exchange(call, self._options, self._compression)
        attempts = Retrying(
            retry=exchange.is_worth_repeating,
            wait=exchange.wait_s,
            stop=exchange.is_over,
            sleep=self._sleep,
            before_sleep=exchange.tell_wait,
            reraise=True,
        )
        answer: _Answer = attempts(self._attempt, exchange)
        return answer

    def close(self) -> None:
        """Close the connections; the client cannot be used after it."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(url={self.url!r})"

    def _attempt(self, exchange: Exchange[_Answer]) -> _Answer:
        bound_s = exchange.bound_s()
        ends_at = None if bound_s is None else time.monotonic() + bound_s
        try:
            response = self._receive(exchange, ends_at)
            if exchange.must_send_plain(response):
                response = self._receive(exchange, ends_at)
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        return exchange.answer(response)

    def _receive(self, exchange: Exchange[Any], ends_at: float | None) -> httpx.Response:
        with self._http.stream(**exchange.request()) as response:
            if ends_at is not None and isinstance(response.stream, httpx.SyncByteStream):
                response.stream = BoundedStream(response.stream, ends_at)
            response.read()
        return response


class Models:
    """The models that a client's account can ask: ``client.models``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    list = _method(routes.list_models)
    get = _method(routes.get_model)
    ready = _method(routes.get_model_ready)
    switch = _method(family_calls.switch_model)
    keep_warm = _method(family_calls.keep_model_warm)
    delete = _method(family_calls.delete_model)

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return self._client.send(call)


class Account:
    """The account of a client's key: ``client.account``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    get = _method(routes.get_account)

    def keys(self, *, revoked: bool | None = None, page_size: int = 200) -> Iterator[ApiKey]:
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
            page = self.send(
                routes.list_account_keys(revoked=revoked, limit=page_size, cursor=cursor)
            )
            yield from page.data
            cursor = routes.next_cursor(page)
            if cursor is None:
                return

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return self._client.send(call)


class Datasets(DatasetMethods):
    """The datasets of a client's account: ``client.datasets``."""

    def __init__(self, client: Client) -> None:
        self._client = client

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

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return self._client.send(call)


class Evaluations:
    """Models scored on the evaluation rows of datasets: ``client.evaluations``."""

    def __init__(self, client: Client) -> None:
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

    def list(
        self,
        dataset_id: str,
        *,
        status: str | Sequence[str] | None = None,
        page_size: int = 200,
    ) -> Iterator[Evaluation]:
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
            page = self.send(
                evaluation_calls.page(dataset_id, status=status, limit=page_size, cursor=cursor)
            )
            yield from page.data
            cursor = page.next_cursor if page.data and page.has_more else None
            if cursor is None:
                return

    def records(
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
            page = self.send(
                evaluation_calls.records_page(
                    evaluation_id, offset=len(found), limit=size, **filters
                )
            )
            found.extend(page.data)
            if not page.data or not page.has_more:
                break
        return found

    def wait(
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
            return look_until(lambda: self.get(evaluation_id), following.has_ended, looking, poll_s)

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return self._client.send(call)
