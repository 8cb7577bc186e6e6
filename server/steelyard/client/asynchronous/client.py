"""The client: its calls, its connections and its retries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import BinaryIO, TypeVar

import httpx
from tenacity import AsyncRetrying

from steelyard.client import decide_calls as routes
from steelyard.client import export_calls
from steelyard.client.asynchronous.datasets import AsyncDatasets, AsyncMaps
from steelyard.client.asynchronous.labeling import AsyncLabeling
from steelyard.client.asynchronous.named import AsyncDecision, AsyncNamedDecisions
from steelyard.client.asynchronous.parts import (
    AsyncAccount,
    AsyncAlarms,
    AsyncAuth,
    AsyncBilling,
    AsyncDrafts,
    AsyncEvaluations,
    AsyncFamilies,
    AsyncJobs,
    AsyncJudges,
    AsyncMembers,
    AsyncModels,
    AsyncOperator,
    AsyncPromptTuning,
    AsyncViews,
    AsyncWebhooks,
)
from steelyard.client.asynchronous.resource import saves
from steelyard.client.calls import Call
from steelyard.client.calls import async_method as _method
from steelyard.client.exchange import Compression, Exchange
from steelyard.client.options import ClientOptions
from steelyard.client.row_sources import Progress
from steelyard.client.saving import Saving, export_file
from steelyard.client.transport import (
    AsyncSleep,
    open_async_client,
    receive_async,
    receive_to_async,
)

_Answer = TypeVar("_Answer")


class AsyncClient:
    """A client of a Steelyard server.

    ``steelyard.connect`` makes a ``Client``, which blocks and may be used from several threads;
    ``steelyard.connect_async`` an ``AsyncClient``, whose calls are awaited on one event loop. Every
    method raises the class of ``steelyard.errors`` that the server refused with, or, where no server
    answered, one of ``steelyard.client.failures``.

    Every write is sent under an ``idempotency_key``, a new one when left out: repeated under one
    key, it is done and charged once. Lists come in pages of at most 200, whose ``next_cursor`` is
    the ``cursor`` of the next; methods that iterate ask for pages as they are needed.

    Parameters
    ----------
    options : ClientOptions
        Where it calls, with which key, how long and how often.
    transport : httpx transport, optional
        Carries the bytes instead of httpx's own.
    sleep : callable, optional
        Waits the seconds between attempts.
    """

    def __init__(
        self,
        options: ClientOptions,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: AsyncSleep = asyncio.sleep,
    ) -> None:
        self._options = options
        self._compression = Compression(options.gzip_over)
        self._sleep = sleep
        self._http = open_async_client(options, transport)
        self.models = AsyncModels(self)
        self.account = AsyncAccount(self)
        self.auth = AsyncAuth(self)
        self.billing = AsyncBilling(self)
        self.members = AsyncMembers(self)
        self.operator = AsyncOperator(self)
        self.evaluations = AsyncEvaluations(self)
        self.datasets = AsyncDatasets(self)
        self.families = AsyncFamilies(self)
        self.jobs = AsyncJobs(self)
        self.drafts = AsyncDrafts(self)
        self.judges = AsyncJudges(self)
        self.labeling = AsyncLabeling(self)
        self.maps = AsyncMaps(self)
        self.prompt_tuning = AsyncPromptTuning(self)
        self.webhooks = AsyncWebhooks(self)
        self.alarms = AsyncAlarms(self)
        self.views = AsyncViews(self)
        self.named_decisions = AsyncNamedDecisions(self)

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
    decision_log = _method(routes.decision_log)
    decision_summary = _method(routes.decision_summary)
    decision_series = _method(routes.decision_series)
    stored_decision = _method(routes.stored_decision)
    export_decisions = _method(routes.export_decisions)
    export_decisions_to = saves(export_calls.save_decisions)

    def decision(self, reference: str) -> AsyncDecision:
        """Return a named decision: ``name``, ``name@alias`` or ``name@7``."""
        return AsyncDecision(self, reference)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._options.url

    @property
    def session(self) -> str | None:
        """The token of the session as it is now; empty without one, ``None`` for other clients."""
        token = self._options.session_token
        return None if token is None else token.value

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call, and again as long as a failure may pass and there is time.

        Raises
        ------
        steelyard.errors.SteelyardError
            The last attempt's.
        """
        exchange = Exchange(call, self._options, self._compression)
        answer: _Answer = await self._attempts(exchange)(self._attempt, exchange)
        return answer

    async def save_export(self, saving: Saving) -> Path:
        """Send the call of an export, and write its answer to the disk as it comes."""
        exchange = Exchange(saving.call, self._options, self._compression)
        with export_file(saving.path, saving.format, force=saving.force) as file:
            await self._attempts(exchange)(self._attempt_to, exchange, file, saving.progress)
        return saving.path

    async def close(self) -> None:
        """Close the connections; the client cannot be used after it."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r})"

    def _attempts(self, exchange: Exchange[_Answer]) -> AsyncRetrying:
        return AsyncRetrying(
            retry=exchange.is_worth_repeating,
            wait=exchange.wait_s,
            stop=exchange.is_over,
            sleep=self._sleep,
            before_sleep=exchange.log_wait,
            reraise=True,
        )

    async def _attempt_to(
        self, exchange: Exchange[bytes], file: BinaryIO, progress: Progress | None
    ) -> None:
        try:
            response = await receive_to_async(self._http, exchange.request(), file, progress)
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        exchange.check(response)

    async def _attempt(self, exchange: Exchange[_Answer]) -> _Answer:
        ends_at = exchange.ends_at()
        try:
            response = await receive_async(self._http, exchange.request(), ends_at)
            if exchange.must_send_plain(response):
                response = await receive_async(self._http, exchange.request(), ends_at)
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        return exchange.answer(response)
