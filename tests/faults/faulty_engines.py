"""A server with two base models whose engines a test controls."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx
import numpy as np

from steelyard.app.application import create_app
from steelyard.app.bootstrap import open_service
from steelyard.app.services import ApiServices
from steelyard.scoring.hashing import WordCounter
from steelyard.serving.base import ModelDouble
from steelyard.settings import read_settings
from support.servers.hosting import GARBAGE, Behaving, Scored, crash, with_logits
from support.servers.server_thread import ServerThread

FIRST, SECOND = "first", "second"
#: Nano-USD of an input token, of both models.
PRICE = 12


def raising(error: BaseException) -> Callable[[Scored], Scored]:
    """Raise in the scorer's thread."""

    def behave(_: Scored) -> NoReturn:
        raise error

    return behave


def _in_turns(logits: np.ndarray) -> np.ndarray:
    return np.where(np.arange(logits.size) % 2 == 0, np.nan, 1.0).astype(np.float32)


#: Ways in which an engine fails at once.
FAULTS: dict[str, Callable[[Scored], Scored]] = {
    "raises": crash,
    "raises a timeout": raising(TimeoutError("the socket timed out")),
    "runs out of memory": raising(MemoryError()),
    "recurses": raising(RecursionError()),
    "stops an iteration": raising(StopIteration()),
    "exits": raising(SystemExit(1)),
    "is interrupted": raising(KeyboardInterrupt()),
    "one nan": with_logits(_in_turns),
    "minus infinity": with_logits(lambda logits: logits - np.inf),
    "no logits": with_logits(lambda logits: logits[:0]),
    "a number": with_logits(lambda logits: np.float32(1)),
    "texts": with_logits(lambda logits: np.array(["x"] * logits.size)),
    "nothing": with_logits(lambda logits: None),
    **GARBAGE,
}


@dataclass(frozen=True)
class FaultyServer:
    """A running server and its two engines."""

    http: httpx.Client
    engines: dict[str, Behaving]
    services: ApiServices

    @property
    def calls(self) -> dict[str, int]:
        """Calls that each engine has got."""
        return {name: engine.n_calls for name, engine in self.engines.items()}

    def ask(self, key: str | None = None, **fields: Any) -> httpx.Response:
        """Ask the first model for a decision."""
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {
            "context": "Paid twice.",
            "decisions": [
                {"id": "d", "question": "Which?", "outcomes": ["a", "b", "c"]},
                {"id": "e", "question": "Money back?", "kind": "binary"},
            ],
            **fields,
        }
        return self.http.post("/v1/decide", json=body, headers=headers)

    def wallet(self) -> dict[str, str]:
        """Return the money of the one account; without accounts it may be less than nothing."""
        found: dict[str, str] = self.http.get("/v1/account").json()["wallet"]
        return found


@contextmanager
def faulty_server(**overrides: Any) -> Iterator[FaultyServer]:
    """Serve; overrides are settings. Engines that hang are freed at the end."""
    engines = {name: Behaving(name) for name in (FIRST, SECOND)}
    with tempfile.TemporaryDirectory(prefix="steelyard-test-") as home:
        given = {
            "home": home,
            "base_models": f"{SECOND}=hashing",
            "prices": f"{FIRST}={PRICE},{SECOND}={PRICE}",
            "requests_per_minute": 0,
            "tokens_per_minute": 0,
            "shutdown_s": 1,
        }
        settings = read_settings({**given, **overrides}, environ={})
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        with open_service(
            settings,
            load_model=lambda *_: ModelDouble(engines[FIRST], WordCounter()),
            load_further=lambda name, *_: ModelDouble(engines[name], WordCounter()),
        ) as services:
            thread = ServerThread(lambda: create_app(services), listener)
            try:
                with httpx.Client(base_url=f"http://{host}:{port}", timeout=60) as http:
                    yield FaultyServer(http, engines, services)
            finally:
                for engine in engines.values():
                    engine.may_answer.set()
                thread.stop()
