"""The client: its calls, its connections and its retries."""

# Made of asynchronous/client.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

import time
from pathlib import Path
from typing import BinaryIO, TypeVar

import httpx
from tenacity import Retrying

from steelyard.client import decide_calls as routes
from steelyard.client import export_calls
from steelyard.client.blocking.datasets import Datasets, Maps
from steelyard.client.blocking.labeling import Labeling
from steelyard.client.blocking.named import Decision, NamedDecisions
from steelyard.client.blocking.parts import (
    Account,
    Alarms,
    Auth,
    Billing,
    Drafts,
    Evaluations,
    Families,
    Jobs,
    Judges,
    Members,
    Models,
    Operator,
    PromptTuning,
    Views,
    Webhooks,
)
from steelyard.client.blocking.resource import saves
from steelyard.client.calls import Call
from steelyard.client.calls import blocking_method as _method
from steelyard.client.exchange import Compression, Exchange
from steelyard.client.options import ClientOptions
from steelyard.client.row_sources import Progress
from steelyard.client.saving import Saving, export_file
from steelyard.client.transport import (
    Sleep,
    open_client,
    receive,
    receive_to,
)

_Answer = TypeVar("_Answer")


class Client:
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
        transport: httpx.BaseTransport | None = None,
        sleep: Sleep = time.sleep,
    ) -> None:
        self._options = options
        self._compression = Compression(options.gzip_over)
        self._sleep = sleep
        self._http = open_client(options, transport)
        self.models = Models(self)
        self.account = Account(self)
        self.auth = Auth(self)
        self.billing = Billing(self)
        self.members = Members(self)
        self.operator = Operator(self)
        self.evaluations = Evaluations(self)
        self.datasets = Datasets(self)
        self.families = Families(self)
        self.jobs = Jobs(self)
        self.drafts = Drafts(self)
        self.judges = Judges(self)
        self.labeling = Labeling(self)
        self.maps = Maps(self)
        self.prompt_tuning = PromptTuning(self)
        self.webhooks = Webhooks(self)
        self.alarms = Alarms(self)
        self.views = Views(self)
        self.named_decisions = NamedDecisions(self)

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

    def decision(self, reference: str) -> Decision:
        """Return a named decision: ``name``, ``name@alias`` or ``name@7``."""
        return Decision(self, reference)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._options.url

    @property
    def session(self) -> str | None:
        """The token of the session as it is now; empty without one, ``None`` for other clients."""
        token = self._options.session_token
        return None if token is None else token.value

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call, and again as long as a failure may pass and there is time.

        Raises
        ------
        steelyard.errors.SteelyardError
            The last attempt's.
        """
        exchange = Exchange(call, self._options, self._compression)
        answer: _Answer = self._attempts(exchange)(self._attempt, exchange)
        return answer

    def save_export(self, saving: Saving) -> Path:
        """Send the call of an export, and write its answer to the disk as it comes."""
        exchange = Exchange(saving.call, self._options, self._compression)
        with export_file(saving.path, saving.format, force=saving.force) as file:
            self._attempts(exchange)(self._attempt_to, exchange, file, saving.progress)
        return saving.path

    def close(self) -> None:
        """Close the connections; the client cannot be used after it."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r})"

    def _attempts(self, exchange: Exchange[_Answer]) -> Retrying:
        return Retrying(
            retry=exchange.is_worth_repeating,
            wait=exchange.wait_s,
            stop=exchange.is_over,
            sleep=self._sleep,
            before_sleep=exchange.log_wait,
            reraise=True,
        )

    def _attempt_to(
        self, exchange: Exchange[bytes], file: BinaryIO, progress: Progress | None
    ) -> None:
        try:
            response = receive_to(self._http, exchange.request(), file, progress)
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        exchange.check(response)

    def _attempt(self, exchange: Exchange[_Answer]) -> _Answer:
        ends_at = exchange.ends_at()
        try:
            response = receive(self._http, exchange.request(), ends_at)
            if exchange.must_send_plain(response):
                response = receive(self._http, exchange.request(), ends_at)
        except httpx.RequestError as error:
            raise exchange.lost(error) from error
        return exchange.answer(response)
