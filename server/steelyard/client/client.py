"""The two clients: their calls, their connections and their retries."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import httpx
from tenacity import AsyncRetrying

from steelyard.client import decide_calls as routes
from steelyard.client import export_calls
from steelyard.client.calls import Call
from steelyard.client.datasets import DatasetResource, MapResource
from steelyard.client.exchange import Compression, Exchange
from steelyard.client.labeling import LabelingResource
from steelyard.client.methods import (
    Awaited,
    Blocking,
    HasCalls,
    Mode,
    finish,
    method,
    saves,
    settle,
)
from steelyard.client.named import DecisionResource, NamedDecisionResource
from steelyard.client.options import ClientOptions
from steelyard.client.parts import (
    AccountResource,
    AlarmResource,
    AuthResource,
    BillingResource,
    DraftResource,
    EvaluationResource,
    FamilyResource,
    JobsResource,
    JudgeResource,
    MemberResource,
    ModelResource,
    OperatorResource,
    PromptTuningResource,
    WebhookResource,
)
from steelyard.client.row_sources import Progress
from steelyard.client.saving import Saving, export_file
from steelyard.client.transport import (
    AsyncSleep,
    Sleep,
    open_async_client,
    open_client,
    receive,
    receive_async,
    receive_to,
    receive_to_async,
)

_Answer = TypeVar("_Answer")


class ServerCalls(HasCalls[Mode]):
    """The calls of both clients, and their attempts."""

    #: Each client's own: the connections, how they receive an answer, and how to wait.
    _http: Any
    _receive: Any
    _receive_to: Any
    _sleep: Any
    pause: Any

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(self)
        self._options = options
        self._compression = Compression(options.gzip_over)
        self.models = ModelResource(self)
        self.account = AccountResource(self)
        self.auth = AuthResource(self)
        self.billing = BillingResource(self)
        self.members = MemberResource(self)
        self.operator = OperatorResource(self)
        self.evaluations = EvaluationResource(self)
        self.datasets = DatasetResource(self)
        self.families = FamilyResource(self)
        self.jobs = JobsResource(self)
        self.drafts = DraftResource(self)
        self.judges = JudgeResource(self)
        self.labeling = LabelingResource(self)
        self.maps = MapResource(self)
        self.prompt_tuning = PromptTuningResource(self)
        self.webhooks = WebhookResource(self)
        self.alarms = AlarmResource(self)
        self.named_decisions = NamedDecisionResource(self)

    decide = method(routes.decide)
    estimate = method(routes.estimate)
    playground = method(routes.playground)
    lint = method(routes.lint)
    feedback = method(routes.feedback)
    decisions = method(routes.decisions)
    systemone = method(routes.systemone)
    systemone_estimate = method(routes.systemone_estimate)
    translate = method(routes.translate)
    capabilities = method(routes.capabilities)
    recipes = method(routes.recipes)
    health = method(routes.health)
    ready = method(routes.ready)
    decision_log = method(routes.decision_log)
    decision_summary = method(routes.decision_summary)
    decision_series = method(routes.decision_series)
    stored_decision = method(routes.stored_decision)
    export_decisions = method(routes.export_decisions)
    export_decisions_to = saves(export_calls.save_decisions)

    def decision(self, reference: str) -> DecisionResource[Mode]:
        """Return a named decision: ``name``, ``name@alias`` or ``name@7``."""
        return DecisionResource(self, reference)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._options.url

    @property
    def session(self) -> str | None:
        """The token of the session as it is now; empty without one, ``None`` for other clients."""
        token = self._options.session_token
        return None if token is None else token.value

    async def _answer_to(self, call: Call[_Answer]) -> _Answer:
        exchange = Exchange(call, self._options, self._compression)
        answer: _Answer = await self._attempts(exchange)(self._attempt, exchange)
        return answer

    async def _save(self, saving: Saving) -> Path:
        exchange = Exchange(saving.call, self._options, self._compression)
        with export_file(saving.path, saving.format, force=saving.force) as file:
            await self._attempts(exchange)(self._attempt_to, exchange, file, saving.progress)
        return saving.path

    def _attempts(self, exchange: Exchange[_Answer]) -> AsyncRetrying:
        return AsyncRetrying(
            retry=exchange.is_worth_repeating,
            wait=exchange.wait_s,
            stop=exchange.is_over,
            sleep=lambda seconds: settle(self._sleep(seconds)),
            before_sleep=exchange.log_wait,
            reraise=True,
        )

    async def _attempt_to(
        self, exchange: Exchange[bytes], file: BinaryIO, progress: Progress | None
    ) -> None:
        try:
            response = await settle(
                self._receive_to(self._http, exchange.request(), file, progress)
            )
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        exchange.check(response)

    async def _attempt(self, exchange: Exchange[_Answer]) -> _Answer:
        ends_at = exchange.ends_at()
        try:
            response = await settle(self._receive(self._http, exchange.request(), ends_at))
            if exchange.must_send_plain(response):
                response = await settle(self._receive(self._http, exchange.request(), ends_at))
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        return exchange.answer(response)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r})"


class Client(ServerCalls[Blocking]):
    """A client of a Steelyard server.

    ``steelyard.connect`` makes a ``Client``, which blocks and may be used from several threads;
    ``steelyard.connect_async`` an ``AsyncClient``, whose calls are awaited on one event loop. Every
    method raises the class of ``steelyard.errors`` that the server refused with, or, where no
    server answered, one of ``steelyard.client.failures``.

    Every write is sent under an ``idempotency_key``, a new one when left out: repeated under one
    key, it is done and charged once. Lists come in pages of at most 200, whose ``next_cursor`` is
    the ``cursor`` of the next; methods that iterate ask for pages as they are needed.

    ``transport`` carries the bytes instead of httpx's own; ``sleep`` waits the seconds between
    attempts.
    """

    is_blocking = True
    _receive = staticmethod(receive)
    _receive_to = staticmethod(receive_to)
    pause = staticmethod(time.sleep)

    def __init__(
        self,
        options: ClientOptions,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Sleep = time.sleep,
    ) -> None:
        super().__init__(options)
        self._sleep = sleep
        self._http = open_client(options, transport)

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call, and again while a failure may pass and there is time; raise the last."""
        return finish(self._answer_to(call))

    def save_export(self, saving: Saving) -> Path:
        """Send the call of an export, and write its answer to the disk as it comes."""
        return finish(self._save(saving))

    def close(self) -> None:
        """Close the connections; the client cannot be used after it."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(ServerCalls[Awaited]):
    """A client as ``Client``, with the same parameters, whose calls are awaited on one event loop."""

    _receive = staticmethod(receive_async)
    _receive_to = staticmethod(receive_to_async)
    pause = staticmethod(asyncio.sleep)

    def __init__(
        self,
        options: ClientOptions,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: AsyncSleep = asyncio.sleep,
    ) -> None:
        super().__init__(options)
        self._sleep = sleep
        self._http = open_async_client(options, transport)

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call, and again while a failure may pass and there is time; raise the last."""
        return await self._answer_to(call)

    async def save_export(self, saving: Saving) -> Path:
        """Send the call of an export, and write its answer to the disk as it comes."""
        return await self._save(saving)

    async def close(self) -> None:
        """Close the connections; the client cannot be used after it."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
