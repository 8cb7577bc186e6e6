"""The real application before services that a test controls, to test HTTP's part."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from steelyard.accounts.rate_limits import RateWindows, RequestLimits, TokenAllowance
from steelyard.alarms.golden_checks import GoldenRowChecks
from steelyard.alarms.watching import Watcher
from steelyard.app.application import create_app
from steelyard.app.services import ApiServices
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import Charge, DecideResponse, TokenizerInfo, Usage
from steelyard.errors import (
    InvalidApiKeyError,
    MissingApiKeyError,
    SteelyardError,
    StorageUnavailableError,
)
from steelyard.operations.write import Replay, Write
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService
from steelyard.settings import Settings, read_settings
from steelyard.storage import State
from steelyard.storage.probing import StateProbe
from support.servers.server_thread import ServerThread, exchange
from support.waiting import until

ANSWER = DecideResponse(
    id="dec_1",
    model="stand-in",
    decisions={},
    usage=Usage(
        input_tokens=7,
        tokenizer=TokenizerInfo(name="t", revision="1", sha256="0"),
        decisions=3,
        prompt_tokens=7,
    ),
    timing_ms={},
    charge=Charge(operation_id="op_1"),
)
#: Any valid request.
REQUEST = {
    "context": "Help!",
    "decisions": [{"id": "urgent", "kind": "binary", "question": "Is it urgent?"}],
}


class StandInDecisions:
    """Answers decide: records its requests, and fails or waits on demand."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.calls: list[Write] = []
        self.requests: list[ValidRequest] = []
        self.failure: BaseException | None = None
        self.replay: Replay | None = None
        self.started = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def check_flood(self, caller: Caller) -> None:
        """Allow everybody to go on."""

    async def decide(self, write: Write, request: ValidRequest) -> DecideResponse:
        self.calls.append(write)
        self.requests.append(request)
        self.started.set()
        await until(self.may_answer.is_set)
        if self.failure is not None:
            raise self.failure
        if self.replay is not None:
            raise self.replay
        write.sent.operation_id = "op_1"
        return ANSWER


class StandInAccounts:
    """Knows the keys ``full``, ``inference`` and ``read``, and the operator's; else everyone."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled

    async def authenticate(self, authorization: str | None, address: str) -> Caller:
        if not self._enabled:
            return Caller(LOCAL_ACCOUNT, None, "full", address)
        if authorization is None:
            raise MissingApiKeyError("Send an API key.")
        scope = authorization.removeprefix("Bearer ")
        if scope == "operator":
            return Caller(LOCAL_ACCOUNT, "key_operator", "full", address)
        if scope not in {"full", "inference", "read"}:
            raise InvalidApiKeyError("The API key is not known.")
        return Caller("acct_1", f"key_{scope}", scope, address)


class StandInState:
    """Can be written, unless a test sets it otherwise."""

    def __init__(self) -> None:
        self.failure: SteelyardError | None = None

    async def write(self, work: Any) -> None:
        if self.failure is not None:
            raise self.failure

    async def check(self) -> None:
        """Look whether it can be written, as its probe does."""
        await self.write(None)

    def break_down(self) -> None:
        self.failure = StorageUnavailableError("The disk is full.")


class StandInServer:
    """A running application with its stand-ins."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self.decisions = StandInDecisions()
        self.state = StandInState()
        self.windows = RateWindows()
        self.settings = settings
        model = SimpleNamespace(
            name="stand-in",
            engine="none",
            runs_on="none",
            queue=SimpleNamespace(n_waiting=0),
            is_connected=False,
            hangs=True,
        )
        models = SimpleNamespace(default=model, hosted=(model,), engine_statuses=dict)
        # Nothing here asks the other services.
        rooms: dict[type, Any] = {
            Settings: settings,
            State: self.state,
            StateProbe: self.state,
            ModelRegistry: models,
            DecisionService: self.decisions,
            TokenAllowance: TokenAllowance(self.windows, settings.tokens_per_minute),
            Watcher: SimpleNamespace(counts={}),
            GoldenRowChecks: SimpleNamespace(checked_at={}),
        }
        given: dict[str, Any] = {
            "settings": settings,
            "models": models,
            "accounts": StandInAccounts(enabled=settings.accounts == "on"),
            "sessions": None,
            "limits": RequestLimits(
                self.windows,
                per_minute=settings.requests_per_minute,
                public_per_minute=settings.public_requests_per_minute,
            ),
            "state": self.state,
            "get": rooms.__getitem__,
        }
        self.services = ApiServices(**given)
        self.host, self.port = listener.getsockname()
        self.url = f"http://{self.host}:{self.port}"
        self.thread = ServerThread(lambda: create_app(self.services), listener)

    def exchange(self, sent: bytes) -> bytes:
        """Send raw bytes and return the answer until the server closes."""
        return exchange(self.host, self.port, sent)


@contextmanager
def stand_in_server(**overrides: Any) -> Iterator[StandInServer]:
    """Serve; overrides are settings. Rates have no bound unless given."""
    rates = {"requests_per_minute": 0, "public_requests_per_minute": 0}
    settings = read_settings({**rates, "shutdown_s": 0.5, **overrides}, environ={})
    server = StandInServer(settings, socket.create_server(("127.0.0.1", 0)))
    try:
        yield server
    finally:
        server.decisions.may_answer.set()
        server.thread.stop()
        server.windows.close()
