"""A server for tests: the real application on a free loopback port, in a thread of its own.

Behind it are hashing scorers, wrapped so that a test sees how often each ran and can make it fail
or wait, and a state in a folder of its own.
"""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sanic import Sanic

from steelyard.app.application import create_app
from steelyard.app.bootstrap import open_service
from steelyard.app.services import ApiServices
from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.serving.base import LoadedModel, load_further_model, load_named_model
from steelyard.settings import read_settings
from support.servers.server_thread import ServerThread

#: A test asks as fast as it can; those of the rates set them.
_NO_RATES = {"requests_per_minute": 0, "tokens_per_minute": 0, "public_requests_per_minute": 0}


class CountingScorer:
    """Counts calls of the scorer that it wraps; fails or waits on demand."""

    def __init__(self, inner: Scorer) -> None:
        self._inner = inner
        self.reset()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def engine(self) -> str:
        return self._inner.engine

    def __getattr__(self, name: str) -> Any:
        # What a scorer may have besides, such as the hash that says whose answers these are.
        return getattr(self._inner, name)

    def reset(self) -> None:
        self.n_requests = 0
        self.failure: Exception | None = None
        self.started = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        self.n_requests += len(requests)
        self.started.set()
        self.may_answer.wait(timeout=30)
        if self.failure is not None:
            raise self.failure
        return self._inner.score(requests)

    def close(self) -> None:
        self.may_answer.set()
        self._inner.close()


@dataclass(frozen=True)
class LiveServer:
    """A running server: its address, and the parts that answer behind it."""

    host: str
    port: int
    scorers: dict[str, CountingScorer]
    services: ApiServices

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def scorer(self) -> CountingScorer:
        """The default model's."""
        return self.scorers[self.services.models.default.name]

    @property
    def n_waiting(self) -> int:
        """Requests that wait for the default model's engine."""
        return self.services.models.default.queue.n_waiting

    def exchange(self, sent: bytes, *, timeout_s: float = 10) -> bytes:
        """Send raw bytes and give all that comes back until the server closes."""
        received = b""
        with socket.create_connection((self.host, self.port), timeout=timeout_s) as connection:
            connection.sendall(sent)
            while chunk := connection.recv(65536):
                received += chunk
        return received


@contextmanager
def live_server(
    configure: Callable[[Sanic], None] | None = None, **overrides: object
) -> Iterator[LiveServer]:
    """Run a server with hashing scorers; overrides are settings, its home is removed at the end."""
    scorers: dict[str, CountingScorer] = {}

    def watch(model: LoadedModel) -> LoadedModel:
        scorer = scorers[model.scorer.name] = CountingScorer(model.scorer)
        return replace(model, scorer=scorer)

    with tempfile.TemporaryDirectory(prefix="steelyard-test-") as home:
        given = {"engine": "hashing", "home": home, **_NO_RATES, **overrides}
        settings = read_settings(given, environ={})
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        with open_service(
            settings,
            load_model=lambda *given: watch(load_named_model(*given)),
            load_further=lambda *given: watch(load_further_model(*given)),
        ) as services:

            def make() -> Sanic:
                app = create_app(services)
                if configure is not None:
                    configure(app)
                return app

            thread = ServerThread(make, listener)
            try:
                yield LiveServer(host, port, scorers, services)
            finally:
                for scorer in scorers.values():
                    scorer.may_answer.set()
                thread.stop()
