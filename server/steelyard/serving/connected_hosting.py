"""Connected models as a server has them: each a base model whose engine is another server."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.tokens import TokenCounter
from steelyard.scoring.entailment.folder import fingerprint
from steelyard.scoring.protocol import EngineStatus
from steelyard.serving.auto import completed
from steelyard.serving.connected.chat import ChatWire
from steelyard.serving.connected.decide import DecideWire
from steelyard.serving.connected.decisions import DecisionsWire
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.connected.declared import ConnectedModel, ModelsFile
from steelyard.serving.connected.declared_route import DeclaredRoute
from steelyard.serving.connected.files import in_place, is_here
from steelyard.serving.connected.hub import HubEngine, HubWire
from steelyard.serving.connected.queue import ConnectedQueue, Loop
from steelyard.serving.connected.systemone import SystemOneWire
from steelyard.serving.connected.wire import ModelEngine, ModelWire
from steelyard.serving.connected.writing import write_text
from steelyard.serving.decide import DecideLimits, DecideService
from steelyard.serving.judge.engine import JudgeEngine
from steelyard.serving.judge.pool import JudgePool
from steelyard.serving.judge.wire import GgufWire
from steelyard.serving.reader.engine import EntailmentWire, ReaderEngine
from steelyard.serving.reader.wordings import Wordings
from steelyard.serving.registry import HostedModel, ModelFacts, ModelHealth
from steelyard.settings import InvalidSettingError, Settings, home_of

if TYPE_CHECKING:
    from steelyard.ledger.prices import Prices

_log = logging.getLogger(__name__)
_Entry = TypeVar("_Entry")
#: The status of a model whose files are not on this machine yet.
_LACKING = EngineStatus(None, "none", None, {}, {}, 0)
#: The wires of models that run in this process or beside it.
_WIRES_HERE: dict[str, Callable[[], ModelWire]] = {
    "hub": HubWire,
    "gguf": GgufWire,
    "entailment": EntailmentWire,
}


class ConnectedRegistry:
    """The connected models of a state, as its declarations were when they were last looked at.

    Safe to use from several threads. Nothing is asked until a request is for it.
    """

    def __init__(
        self,
        settings: Settings,
        declarations: Declarations,
        prices: Prices,
        tokenizer: TokenCounter,
        taken: Collection[str],
        closing: ExitStack,
    ) -> None:
        self._settings = settings
        self._declarations = declarations
        self._prices = prices
        self._tokenizer = tokenizer
        self._taken = frozenset(taken)
        #: The base model that answers where a request names none.
        self._default = next(iter(taken))
        self._lock = threading.Lock()
        self._loop: Loop | None = None
        self._pool = JudgePool(settings.judge_memory_bytes)
        self._declared: dict[str, ConnectedModel] = {}
        #: The declared routes: see ``steelyard.serving.routed``.
        self.routes: dict[str, DeclaredRoute] = {}
        self._hosted: dict[str, HostedModel] = {}
        #: The models with where their files are here, and the names of those whose are not here yet.
        self._places: dict[str, ConnectedModel] = {}
        self._lacking: set[str] = set()
        self._queues: dict[str, ConnectedQueue] = {}
        #: The queues of removed and replaced models, which requests under way may still use.
        self._retired: list[ConnectedQueue] = []
        #: Why the home's file cannot be used.
        self._problem = ""
        closing.callback(self.close)
        of_home = declarations.read_in()
        self._number = declarations.number()
        # One machine is to see at its start what is wrong; one of several goes on with the rest.
        self._files = declarations.files()
        self._take(declarations.read(), refused=of_home)

    def current(self) -> tuple[HostedModel, ...]:
        """Return the models."""
        return tuple(self._hosted.values())

    def look(self) -> None:
        """Take over what was declared otherwise since the last look, in this process or another."""
        with self._lock:
            self._close_retired()
            problem = ""
            try:
                self._declarations.read_in()
            except InvalidSettingError as error:
                problem = str(error)
            if problem not in {"", self._problem}:
                _log.error("The connected models stay as they were: %s", problem)
            self._problem = problem
            number = self._declarations.number()
            if number != self._number or any(is_here(self._places[name]) for name in self._lacking):
                self._files = self._declarations.files()
                self._take(self._declarations.stored())
                self._number = number

    def _close_retired(self) -> None:
        retired, self._retired = self._retired, []
        for queue in retired:
            if queue.n_unanswered:
                self._retired.append(queue)
            else:
                queue.close()

    def close(self) -> None:
        """Close every connection."""
        for queue in (*self._queues.values(), *self._retired):
            queue.close()
        self._queues, self._retired = {}, []
        if self._loop is not None:
            self._loop.close()

    def _take(self, file: ModelsFile, *, refused: Collection[str] = ()) -> None:
        """Open new and changed models; the next look closes those that they replace, and removed ones.

        What cannot be used stays as it was, or raises ``InvalidSettingError`` where it is to be refused.
        """
        file = completed(file, self._default)
        opened: dict[str, tuple[HostedModel, ConnectedQueue]] = {}

        def open_changed(name: str, model: ConnectedModel) -> None:
            self._check_name(name)
            place = in_place(model, self._files.get(name, {}), home_of(self._settings))
            has_come = name in self._lacking and is_here(place)
            if has_come or self._declared.get(name) != model or self._places[name] != place:
                opened[name] = self._open(name, model, place)
            self._places[name] = place

        def check_route(name: str, route: DeclaredRoute) -> None:
            self._check_name(name)
            if missing := sorted(set(route.models) - declared.keys() - self._taken):
                raise InvalidSettingError(
                    f"The route {name!r} leads through {missing[0]!r}, which is not here; connect "
                    "that model, or remove the route."
                )

        declared = _usable(file.models, self._declared, open_changed, refused)
        routes = _usable(file.routes, self.routes, check_route, refused)
        unchanged = {name: self._hosted[name] for name in declared if name not in opened}
        self._retired += [queue for name, queue in self._queues.items() if name not in unchanged]
        self._queues = {name: self._queues[name] for name in unchanged}
        self._queues |= {name: queue for name, (_, queue) in opened.items()}
        hosted = unchanged | {name: model for name, (model, _) in opened.items()}
        self._hosted = {name: hosted[name] for name in declared}
        self._declared = declared
        self._lacking = {name for name in declared if not is_here(self._places[name])}
        self.routes = routes

    def _check_name(self, name: str) -> None:
        if name in self._taken:
            raise InvalidSettingError(
                f"{name!r} names a model of this server and a connected one or a route; rename "
                "the latter."
            )

    async def _write(self, messages: list[dict[str, str]], max_tokens: int) -> str | None:
        """Return the text of the first model that may write, after messages; ``None`` where none may."""
        for name, model in self._declared.items():
            if model.writer:
                queue: Any = self._hosted[name].queue
                return await asyncio.wait_for(
                    write_text(name, model, queue.remote, messages, max_tokens), model.timeout_s
                )
        return None

    def _open(
        self, name: str, model: ConnectedModel, place: ConnectedModel
    ) -> tuple[HostedModel, ConnectedQueue]:
        self._loop = self._loop or Loop()
        queue = open_queue(
            name,
            place,
            self._loop,
            max_queue=self._settings.max_queue,
            pool=self._pool,
            threads=self._settings.threads,
            wordings=Wordings(home_of(self._settings), self._write),
        )
        calibration = model.calibration
        decide = DecideService(
            model_name=name,
            temperatures=TemperatureTable(
                None if calibration is None else calibration.temperatures
            ),
            tokenizer=self._tokenizer,
            limits=DecideLimits(model.reads_tokens),
            reads_guidelines=model.wire not in {"hub", "entailment"},
            thought_tokens=model.thought_tokens,
        )
        facts = ModelFacts(
            decide=decide,
            engine=f"connected-{model.wire}",
            description=_description(model),
            release_date=model.added or dt.datetime.now(dt.UTC).date(),
            evaluation_key=_identity(name, model, place),
            is_connected=True,
            sha256=_source(name, model),
            is_calibrated=calibration is not None,
            is_teacher=model.teacher,
            warm_up=queue.warm_up if model.warm else None,
            provider_model=lambda: getattr(queue.remote, "provider_model", ""),
        )
        price_nano = self._prices.by_model.get(name, model.price_nano)
        health = ModelHealth(lambda: None if is_here(place) else _LACKING)
        return HostedModel(facts, queue, price_nano=price_nano, health=health), queue


def _usable(
    entries: Mapping[str, _Entry],
    before: Mapping[str, _Entry],
    use: Callable[[str, _Entry], None],
    refused: Collection[str],
) -> dict[str, _Entry]:
    """Return the entries that can be used, and in the place of others what they were before."""
    usable = {}
    for name, entry in entries.items():
        try:
            use(name, entry)
        except InvalidSettingError as error:
            if name in refused:
                raise
            _log.error("The declaration of %r is not used here: %s", name, error)
            if name in before:
                usable[name] = before[name]
        else:
            usable[name] = entry
    return usable


def open_queue(
    name: str,
    model: ConnectedModel,
    loop: Loop,
    *,
    max_queue: int,
    home: Path = Path(),
    pool: JudgePool | None = None,
    threads: int = 0,
    wordings: Wordings | None = None,
) -> ConnectedQueue:
    """Return the queue of one connected model of a home."""
    remote: ModelEngine
    if model.wire == "hub":
        remote = HubEngine(name, home / model.folder)
    elif model.wire == "gguf":
        pool = pool or JudgePool()
        remote = JudgeEngine(name, model, home / model.file, pool, threads=threads)
    elif model.wire == "entailment":
        remote = ReaderEngine(name, model, home / model.file, wordings)
    else:
        remote = _remote(name, model)
    return ConnectedQueue(
        name,
        wire_of(name, model),
        remote,
        loop,
        concurrency=1 if model.wire in {"hub", "entailment"} else model.concurrency,
        timeout_s=model.timeout_s,
        max_queue=max_queue,
    )


def _remote(name: str, model: ConnectedModel) -> ModelEngine:
    # Here, so that a server with no such model does not import the clients.
    from steelyard.serving.connected.remote import Remote  # noqa: PLC0415

    return Remote(name, model)


def wire_of(name: str, model: ConnectedModel) -> ModelWire:
    """Return the client for a model's wire format."""
    remote_name = model.model or name
    if model.wire == "chat":
        return ChatWire(remote_name, model.orders or 1)
    if model.wire == "systemone":
        return SystemOneWire(remote_name)
    if model.wire == "decisions":
        return DecisionsWire(remote_name)
    if model.wire in _WIRES_HERE:
        return _WIRES_HERE[model.wire]()
    return DecideWire(model.model)


def _description(model: ConnectedModel) -> str:
    origins = {
        "hub": f"Exported from {model.model}",
        "gguf": f"The language model in {Path(model.file).name}",
        "entailment": f"The entailment encoder in {Path(model.file).name}",
    }
    if model.wire in origins:
        return f"{origins[model.wire]}; it answers on this server."
    return f"Connected over the wire {model.wire}; it answers on another server."


def _source(name: str, model: ConnectedModel) -> str:
    """Return a hash of the source of a model's logits, at any address and with any calibration.

    Heads that read its logits stay of use when it moves to another address.
    """
    parts: list[Any] = [name, model.wire, model.folder or model.file or model.model, model.orders]
    parts += [] if model.think is None else [model.think]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _identity(name: str, model: ConnectedModel, place: ConnectedModel) -> str:
    """Return a hash that identifies a model's answers, as far as it is known here."""
    calibration = model.calibration
    parts: list[Any] = [name, model.wire, model.url]
    parts += [model.folder or model.file or model.model, model.orders]
    parts.append(None if calibration is None else calibration.temperatures)
    parts += [] if model.think is None else [model.think]
    if model.wire == "entailment":
        parts += [fingerprint(Path(place.file)), model.labels, model.hypothesis_first]
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()
