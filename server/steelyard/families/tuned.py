"""Tuned models as engines hold them: loaded when a call needs them, probed, and let go of.

An artifact is fetched and loaded on a thread of its own, one model at a time, and answers a probe
before anyone else asks it. Each has a queue of its own; a model of heads alone shares the engine of
its base. As many stay as the setting allows: past that, the one that was asked longest ago is let
go of, but never one that is kept warm or has a call in it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import UNSET

from steelyard import errors
from steelyard.families.connected import ConnectedBase, HeadsQueue
from steelyard.families.lineage.lineage import FamilyModel
from steelyard.families.wire import LoadState
from steelyard.scoring.batching import Batcher
from steelyard.scoring.protocol import Scorer
from steelyard.serving.registry import Base, HostedModel, ModelFacts

if TYPE_CHECKING:
    from steelyard.scoring.tuned import TunedScorer

_log = logging.getLogger(__name__)

#: Tuned models that stay loaded unless the setting says otherwise.
MAX_LOADED = 8
#: Seconds for which a model that could not be loaded is not tried again.
FAILED_S = 60.0
#: Seconds that closing waits for a load that runs.
_LOADING_S = 10.0
#: Faults of the surroundings and not of the artifact: the next call may try again.
_PASSING = (errors.StorageUnavailableError, OSError, MemoryError)
_PROBE = {
    "context": "",
    "decisions": [{"id": "probe", "kind": "binary", "question": "Is this a question?"}],
}


class Artifacts(Protocol):
    """Where artifacts are; ``steelyard.storage.artifacts.ArtifactStore`` is one."""

    def fetch(self, sha256: str) -> Path:
        """Return an artifact's folder on this machine, every hash checked."""
        ...


@dataclass(eq=False, slots=True)
class _Slot:
    """One model: asked for, loading, loaded or failed.

    A released slot is no longer listed; calls that still use it may end.
    """

    model: FamilyModel
    artifact_sha256: str
    used_at: float
    ready: Future[HostedModel] = field(default_factory=Future)
    #: What it was loaded on: a connected base that is declared anew is another.
    base: HostedModel | None = None
    queue: Batcher | HeadsQueue | None = None
    scorer: Scorer | None = None
    n_users: int = 0
    failed_at: float | None = None
    is_let_go: bool = False
    is_closed: bool = False

    @property
    def state(self) -> LoadState:
        """Return its load state in this engine."""
        if self.failed_at is not None:
            return "failed"
        return "loaded" if self.ready.done() else "loading"


def without_base(model: FamilyModel) -> errors.ModelUnavailableError:
    """Return the refusal of a model whose base is not here."""
    return errors.ModelUnavailableError(
        f"The base model {model.base} of {model.ref} is not here; start the server with the setting "
        "base_models that it was trained under, or connect it again with 'steelyard model add'."
    )


def without_reader(model: FamilyModel) -> errors.EngineUnavailableError:
    """Return the refusal of a model that reads the evidence of a reader which is not here."""
    return errors.EngineUnavailableError(
        f"The reader {model.gate.reader}, whose evidence {model.ref} reads, is not here; install the "
        "Steelyard that it ships with, or call a model of the family that reads no evidence."
    )


def lacks_reader(model: FamilyModel, find: Callable[[str], HostedModel | None]) -> bool:
    """Return whether a model reads the evidence of a reader that is not here."""
    return model.gate.reader is not UNSET and find(model.gate.reader) is None


def price_of(
    model: FamilyModel, base: HostedModel, find: Callable[[str], HostedModel | None]
) -> int:
    """Return a model's nano-USD per input token: its base's, and those of a reader whose evidence it reads."""
    reader = None if model.gate.reader is UNSET else find(model.gate.reader)
    return base.price_nano + (0 if reader is None else reader.price_nano)


class TunedModels:
    """The tuned models of a process, by adapter; safe to use from several threads and event loops."""

    def __init__(
        self,
        artifacts: Artifacts,
        bases: Mapping[str, Base],
        load_tuned: Callable[..., Scorer],
        *,
        find_base: Callable[[str], HostedModel | None] = lambda _: None,
        max_loaded: int = MAX_LOADED,
        max_queue: int = 256,
        threads: int | None = None,
        close_s: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._artifacts = artifacts
        self._bases = dict(bases)
        self._find_base = find_base
        self._load_tuned = load_tuned
        self._max_loaded = max_loaded
        self._max_queue = max_queue
        self._threads = threads
        self._close_s = close_s
        self._clock = clock
        #: Called when a model has loaded.
        self.on_loaded: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        self._slots: dict[str, _Slot] = {}
        self._threads_running: set[threading.Thread] = set()
        self._one_load = threading.Lock()
        self._pinned: frozenset[str] = frozenset()
        self._is_closed = False

    def states(self) -> dict[str, LoadState]:
        """Return each model's load state, by adapter; a missing one is not loaded."""
        with self._lock:
            self._forget_failures()
            return {adapter: slot.state for adapter, slot in self._slots.items()}

    def load(self, model: FamilyModel, artifact_sha256: str) -> None:
        """Begin to load a model that is neither loaded nor loading; returns at once."""
        with self._lock:
            self._begin(model, artifact_sha256)

    async def ensure(self, model: FamilyModel, artifact_sha256: str, wait_s: float) -> None:
        """Load a model unless it is, and wait for it."""
        async with self.using(model, artifact_sha256, wait_s):
            return

    @asynccontextmanager
    async def using(
        self, model: FamilyModel, artifact_sha256: str, wait_s: float
    ) -> AsyncIterator[HostedModel]:
        """Yield a model, loaded first unless it is; it stays until the end of the block."""
        slot = self._enter(model, artifact_sha256)
        try:
            if not await _is_done(slot.ready, wait_s):
                raise warming(model.ref)
            yield _result_of(slot)
        finally:
            self._leave(slot)

    @contextmanager
    def holding(self, model: FamilyModel, artifact_sha256: str) -> Iterator[HostedModel]:
        """Do as ``using`` does, blocking the thread for as long as loading takes."""
        slot = self._enter(model, artifact_sha256)
        try:
            with suppress(Exception):  # reported below
                slot.ready.result()
            yield _result_of(slot)
        finally:
            self._leave(slot)

    def loaded(self, adapter: str) -> HostedModel | None:
        """Return a model that is loaded; ``None`` for any other, which is not loaded for it."""
        with self._lock:
            slot = self._slots.get(adapter)
        if slot is None or slot.state != "loaded" or self._is_outdated(slot):
            return None
        return slot.ready.result()

    def warm_room(self) -> dict[str, int]:
        """Return how many more models can be kept warm, by base model: they share one bound."""
        with self._lock:
            room = max(0, self._max_loaded - len(self._pinned))
        return dict.fromkeys(self._bases, room)

    def pin(self, adapters: Collection[str]) -> None:
        """Set which models are kept warm: these stay loaded, whatever else is called."""
        with self._lock:
            self._pinned = frozenset(adapters)

    def forget(self, adapter: str) -> None:
        """Release a model: its queue is answered, then its engine is closed."""
        with self._lock:
            slot = self._slots.get(adapter)
            if slot is not None:
                self._let_go(slot)

    def close(self) -> None:
        """Release every model; may be called twice.

        Queued requests are answered for as long as the seconds given to the constructor; a load that
        runs is waited for.
        """
        with self._lock:
            self._is_closed = True
            slots = list(self._slots.values())
            self._slots.clear()
            for slot in slots:
                slot.is_let_go = True
            running = list(self._threads_running)
        for thread in running:
            thread.join(_LOADING_S + self._close_s)
        for slot in slots:
            self._close(slot)

    def _begin(self, model: FamilyModel, artifact_sha256: str) -> _Slot:
        """Return a model's slot, and start to load it where there is none; called with the lock."""
        if self._is_closed:
            raise errors.EngineUnavailableError(
                "The service is stopping; send the request to another instance.", retry_after_s=1.0
            )
        self._forget_failures()
        slot = self._slots.get(model.adapter)
        if slot is not None and self._is_outdated(slot):
            self._let_go(slot)
            slot = None
        if slot is None:
            self._make_room(1)
            slot = _Slot(model, artifact_sha256, self._clock())
            self._slots[model.adapter] = slot
            self._start(self._load, slot)
        return slot

    def _is_outdated(self, slot: _Slot) -> bool:
        """Whether the connected base that a loaded model stands on was declared anew, or is gone."""
        loaded_on = slot.base
        if loaded_on is None or not loaded_on.is_connected:
            return False
        return self._find_base(loaded_on.name) is not loaded_on

    def _base_of(self, model: FamilyModel) -> Base:
        base = self._bases.get(model.base)
        if base is not None:
            return base
        connected = self._find_base(model.base)
        if connected is None or not connected.is_connected:
            raise without_base(model)
        return Base(connected, ConnectedBase(connected))

    def _enter(self, model: FamilyModel, artifact_sha256: str) -> _Slot:
        with self._lock:
            slot = self._begin(model, artifact_sha256)
            slot.n_users += 1
            slot.used_at = self._clock()
            return slot

    def _leave(self, slot: _Slot) -> None:
        with self._lock:
            slot.n_users -= 1
            slot.used_at = self._clock()
            if slot.is_let_go:
                self._close_unused(slot)
            else:  # several in use at a time may have been too many
                self._make_room(0, spared=slot)

    def _forget_failures(self) -> None:
        """Allow models that failed a while ago another try; called with the lock."""
        for adapter, slot in list(self._slots.items()):
            if slot.failed_at is not None and self._clock() - slot.failed_at >= FAILED_S:
                del self._slots[adapter]

    def _make_room(self, n_more: int, spared: _Slot | None = None) -> None:
        """Release the least recently used models until so many more fit; called with the lock.

        A model released this moment may be asked for in the next, and is kept.
        """
        slots = [slot for slot in self._slots.values() if slot.failed_at is None]
        excess = len(slots) + n_more - self._max_loaded
        if excess <= 0:
            return
        idle = [
            slot
            for slot in slots
            if slot is not spared
            and slot.state == "loaded"
            and slot.n_users == 0
            and slot.model.adapter not in self._pinned
        ]
        for slot in sorted(idle, key=lambda slot: slot.used_at)[:excess]:
            self._let_go(slot)

    def _let_go(self, slot: _Slot) -> None:
        """Remove a slot from the list, and close it once it is unused; called with the lock."""
        del self._slots[slot.model.adapter]
        slot.is_let_go = True
        self._close_unused(slot)

    def _close_unused(self, slot: _Slot) -> None:
        if slot.n_users == 0 and slot.ready.done() and not self._is_closed:
            self._start(self._close, slot)

    def _start(self, work: Callable[[_Slot], None], slot: _Slot) -> None:
        """Do work for a slot on a thread; called with the lock."""

        def run() -> None:
            try:
                work(slot)
            finally:
                with self._lock:
                    self._threads_running.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="steelyard-tuned", daemon=True)
        self._threads_running.add(thread)
        thread.start()

    def _load(self, slot: _Slot) -> None:
        try:
            with self._one_load:
                hosted = self._open(slot)
        except BaseException as error:  # noqa: BLE001  whatever it is, someone waits for it
            self._note_failure(slot, error)
            self._shut(slot)
            return
        with self._lock:
            slot.ready.set_result(hosted)
            if slot.is_let_go:
                self._close_unused(slot)
        self.on_loaded()

    def _open(self, slot: _Slot) -> HostedModel:
        model = slot.model
        base = self._base_of(model)
        if slot.is_let_go:
            raise errors.EngineUnavailableError(f"The model {model.ref} is no longer asked for.")
        folder = self._artifacts.fetch(slot.artifact_sha256)
        slot.scorer = self._load_tuned(
            folder, base.scorer, threads=self._threads, adapter=model.adapter
        )
        decide = base.hosted.decide.renamed(model.ref)
        if base.hosted.is_connected:
            # Not probed: that would ask its server, which costs, and may be away for a while.
            slot.queue = HeadsQueue(cast("TunedScorer", slot.scorer), base.hosted.queue)
        else:
            slot.queue = Batcher(slot.scorer, max_queue=self._max_queue)
            prepared = decide.prepare(_PROBE)
            decide.finish(prepared, slot.queue.submit(prepared.rendered).result())
        slot.base = base.hosted
        facts = ModelFacts(
            decide=decide,
            engine=slot.scorer.engine,
            description=f"Tuned from {model.base}.",
            release_date=base.hosted.release_date,
            evaluation_key=tuned_evaluation_key(slot.artifact_sha256, base.hosted.evaluation_key),
        )
        price_nano = price_of(model, base.hosted, self._find_base)
        return HostedModel(facts, slot.queue, price_nano=price_nano)

    def _note_failure(self, slot: _Slot, error: BaseException) -> None:
        adapter, ref = slot.model.adapter, slot.model.ref
        if not slot.is_let_go:
            _log.error("The model %s (%s) could not be loaded.", ref, adapter, exc_info=error)
        failure = errors.EngineUnavailableError(
            f"The model {ref} could not be loaded. {error}"
            if isinstance(error, (errors.EngineUnavailableError, errors.ModelUnavailableError))
            else f"The model {ref} could not be loaded; the server's log says why."
        )
        failure.__cause__ = error
        with self._lock:
            if isinstance(error, _PASSING) or _is_elsewhere(slot.scorer):
                if self._slots.get(adapter) is slot:
                    del self._slots[adapter]
            else:
                slot.failed_at = self._clock()
            slot.ready.set_exception(failure)

    def _close(self, slot: _Slot) -> None:
        with self._lock:
            if slot.is_closed:
                return
            slot.is_closed = True
        self._shut(slot)

    def _shut(self, slot: _Slot) -> None:
        if slot.queue is not None and not slot.queue.close(self._close_s):
            # Closing an engine under the call that hangs in it would be worse than leaving it.
            _log.warning("The engine of %s did not end its last call; it is left.", slot.model.ref)
        elif slot.scorer is not None:
            slot.scorer.close()


def tuned_evaluation_key(artifact_sha256: str, base_key: str) -> str:
    """Return the SHA-256 that identifies a tuned model's answers: of its artifact and its base."""
    return hashlib.sha256(f"{artifact_sha256}\n{base_key}".encode()).hexdigest()


def warming(ref: str) -> errors.ModelWarmingError:
    """Return the refusal of a call to a model that is still loading."""
    return errors.ModelWarmingError(
        f"The model {ref} is still loading; send the request again after Retry-After."
    )


def _is_elsewhere(scorer: Scorer | None) -> bool:
    """Return whether a scorer's engine is in another process, which may be back at the next call."""
    status = getattr(scorer, "engine_status", None)
    return status is not None and status() is not None


def _result_of(slot: _Slot) -> HostedModel:
    error = slot.ready.exception()
    if error is None:
        return slot.ready.result()
    # A fresh one for everyone who waits: an error that is raised twice keeps both tracebacks.
    raise errors.EngineUnavailableError(str(error)) from error


async def _is_done(future: Future[Any], wait_s: float) -> bool:
    """Wait for a future that others wait for too; giving up leaves it as it is."""
    if future.done():
        return True
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop may be gone by then
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), wait_s)
    return future.done()
