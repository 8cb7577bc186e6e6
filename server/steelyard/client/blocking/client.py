"""The client itself: its calls, its connections, and what tries again."""

# Made of asynchronous/client.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar, Unpack

import httpx
from tenacity import Retrying

from steelyard.accounts.wire import ApiKey
from steelyard.billing.wire import Purchase, Transaction
from steelyard.client import console_calls as console
from steelyard.client import decide_calls as routes
from steelyard.client import family_calls
from steelyard.client.blocking.alarms import Alarms
from steelyard.client.blocking.auth import Auth
from steelyard.client.blocking.billing import Billing
from steelyard.client.blocking.datasets import Datasets
from steelyard.client.blocking.drafts import Drafts
from steelyard.client.blocking.evaluations import Evaluations
from steelyard.client.blocking.families import Families
from steelyard.client.blocking.jobs import Jobs
from steelyard.client.blocking.judges import Judges
from steelyard.client.blocking.labeling import Labeling
from steelyard.client.blocking.maps import Maps
from steelyard.client.blocking.members import Members
from steelyard.client.blocking.named import Decision, NamedDecisions
from steelyard.client.blocking.operator import Operator
from steelyard.client.blocking.prompt_tuning import PromptTuning
from steelyard.client.blocking.resource import Resource
from steelyard.client.blocking.views import Views
from steelyard.client.blocking.webhooks import Webhooks
from steelyard.client.calls import Call
from steelyard.client.calls import blocking_method as _method
from steelyard.client.decide_calls import DecisionFilters
from steelyard.client.exchange import Compression, Exchange
from steelyard.client.model_choices import ModelChoice, list_choices
from steelyard.client.options import ClientOptions
from steelyard.client.row_sources import Progress
from steelyard.client.saving import export_file, format_of
from steelyard.client.transport import (
    Sleep,
    http_arguments,
    receive,
    receive_to,
)
from steelyard.people.wire import AuditEntry
from steelyard.wire.queries import ExportFormat

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
        self._http = httpx.Client(transport=transport, **http_arguments(options))
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

    def export_decisions_to(
        self,
        path: str | Path,
        *,
        format: ExportFormat | None = None,  # noqa: A002
        force: bool = False,
        progress: Progress | None = None,
        **filters: Unpack[DecisionFilters],
    ) -> Path:
        """Write stored decisions to a file, or to a folder that Hugging Face ``datasets`` loads.

        Parameters
        ----------
        format : {"csv", "parquet", "hf"}, optional
            That of the path's ending when left out; a path without one of them is a folder.
        force : bool, default False
            Whether to replace what is there.
        progress : callable, optional
            Called with the bytes received so far.
        **filters
            Which of them: those of ``decision_log``, without pages.
        """
        path = Path(path)
        format_ = format_of(path, format)
        call = routes.export_decisions(format_, **filters)
        return self.save(call, path, format_, force=force, progress=progress)

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

    def save(
        self,
        call: Call[bytes],
        path: Path,
        format: ExportFormat,  # noqa: A002
        *,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Send the call of an export, and write its answer to the disk as it comes."""
        exchange = Exchange(call, self._options, self._compression)
        with export_file(path, format, force=force) as file:
            self._attempts(exchange)(self._attempt_to, exchange, file, progress)
        return path

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


class Models(Resource):
    """The models that a client's account can ask: ``client.models``."""

    list = _method(routes.list_models)
    get = _method(routes.get_model)

    def choices(self) -> Sequence[ModelChoice]:
        """Return every name that can be asked: families first, each with why it cannot answer now.

        Then base and connected models and routes, and the numbers of families last.
        """
        models = self._client.send(routes.list_models())
        families = self._client.send(family_calls.list_families())
        return list_choices(models, families)

    ready = _method(routes.get_model_ready)
    switch = _method(family_calls.switch_model)
    keep_warm = _method(family_calls.keep_model_warm)
    delete = _method(family_calls.delete_model)


class Account(Resource):
    """The account of a client's key: ``client.account``."""

    get = _method(routes.get_account)
    billing = _method(routes.get_billing)
    usage = _method(console.usage)
    create_key = _method(console.create_key)
    change_key = _method(console.change_key)
    revoke_key = _method(console.revoke_key)
    sessions = _method(console.sessions)
    end_session = _method(console.end_session)
    end_other_sessions = _method(console.end_other_sessions)
    rename = _method(console.rename_account)
    delete = _method(console.delete_account)
    restore = _method(console.restore_account)

    def export_to(
        self, path: str | Path, *, force: bool = False, progress: Progress | None = None
    ) -> Path:
        """Write all of the account's data to a zip, whose name ends with ``.zip``.

        Parameters
        ----------
        force : bool, default False
            Whether to replace what is there.
        progress : callable, optional
            Called with the bytes received so far.

        Raises
        ------
        ValueError
            When the name does not end with ``.zip``.
        """
        path = Path(path)
        if path.suffix.lower() != ".zip":
            raise ValueError(f"{path} is to be a zip; give a name that ends with .zip.")
        call = console.export_account()
        return self._client.save(call, path, "hf", force=force, progress=progress)

    def audit(self, *, page_size: int = 200) -> Iterator[AuditEntry]:
        """Iterate over what was done in the account's console, newest first."""
        return self._iterate(lambda cursor: console.audit_page(limit=page_size, cursor=cursor))

    def keys(self, *, revoked: bool | None = None, page_size: int = 200) -> Iterator[ApiKey]:
        """Iterate over the account's keys, newest first: the revoked, the others, or both."""
        return self._iterate(
            lambda cursor: routes.list_account_keys(revoked=revoked, limit=page_size, cursor=cursor)
        )

    def purchases(self, *, page_size: int = 200) -> Iterator[Purchase]:
        """Iterate over the account's purchases, newest first."""
        return self._iterate(lambda cursor: routes.list_purchases(limit=page_size, cursor=cursor))

    def transactions(self, *, page_size: int = 200) -> Iterator[Transaction]:
        """Iterate over the lines of the account's ledger, newest first."""
        return self._iterate(
            lambda cursor: routes.list_transactions(limit=page_size, cursor=cursor)
        )
