"""A server for tests: the real application on a free loopback port, in a thread of its own.

Behind it is the hashing scorer, wrapped so that a test sees how often it ran and can make it fail
or wait.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sanic import Sanic

from steelyard.api.app import create_app
from steelyard.bootstrap import (
    Deployment,
    LoadedModel,
    api_services,
    load_named_model,
    open_deployment,
)
from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.settings import read_settings


class CountingScorer:
    """Counts calls of the scorer that it wraps; fails or waits when told to."""

    def __init__(self, inner: Scorer) -> None:
        self._inner = inner
        self.reset()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def engine(self) -> str:
        return self._inner.engine

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
    """A running server: where it is, and what answers behind it."""

    host: str
    port: int
    scorer: CountingScorer
    deployment: Deployment

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def n_waiting(self) -> int:
        """Requests that wait for the engine."""
        return self.deployment.answers._queue.n_waiting

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
    """Run a server with the hashing scorer; overrides are settings."""
    scorers: list[CountingScorer] = []

    def load(engine: str, threads: int | None) -> LoadedModel:
        model = load_named_model(engine, threads)
        scorers.append(CountingScorer(model.scorer))
        return replace(model, scorer=scorers[-1])

    settings = read_settings({"engine": "hashing", **overrides}, environ={})
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    with open_deployment(settings, load_model=load) as deployment:

        def make() -> Sanic:
            app = create_app(api_services(deployment))
            if configure is not None:
                configure(app)
            return app

        stop = serve_in_thread(make, listener)
        try:
            yield LiveServer(host, port, scorers[0], deployment)
        finally:
            stop()


def serve_in_thread(make: Callable[[], Sanic], listener: socket.socket) -> Callable[[], None]:
    """Serve on a loop of a new thread; the function given back stops it and waits."""
    started = threading.Event()
    failures: list[BaseException] = []
    handles: dict[str, object] = {}

    async def run() -> None:
        app = make()
        server = await app.create_server(sock=listener, return_asyncio_server=True)
        await server.startup()
        await server.before_start()
        await server.start_serving()
        await server.after_start()
        handles["loop"] = asyncio.get_running_loop()
        stopping = handles["stopping"] = asyncio.Event()
        started.set()
        await stopping.wait()
        await server.before_stop()
        server.close()
        for connection in tuple(server.connections):
            connection.close_if_idle() or connection.abort()
        await server.wait_closed()
        await server.after_stop()

    def main() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001
            failures.append(error)
            started.set()

    thread = threading.Thread(target=main, name="live-server", daemon=True)
    thread.start()
    started.wait(timeout=30)
    if failures:
        raise failures[0]

    def stop() -> None:
        handles["loop"].call_soon_threadsafe(handles["stopping"].set)
        thread.join(timeout=30)
        assert not thread.is_alive()
        if failures:
            raise failures[0]

    return stop
