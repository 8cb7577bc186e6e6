"""An engine that may be elsewhere: passes go to a remote one while it works, and run here while not.

A ``RoutedEngine`` sends each pass to its remote engine. When that fails, the pass runs in this process,
with the same weights; after failures in a row every pass does, until a probe finds that the remote
engine works again. Traffic is never the probe. Without an engine here, the remote one's error is
raised. The remote engine can be exchanged while passes run: those on their way end where they began.

Here: where passes go. Not here: the remote engine's client
(``steelyard.scoring.remote.triton_engine``).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from steelyard.calibration.temperature import softmax
from steelyard.errors import (
    DeadlineExceededError,
    EngineUnavailableError,
    ModelWarmingError,
    SteelyardError,
)
from steelyard.scoring.cancellation import check_awaited
from steelyard.scoring.engine import PassEngine, Tensors
from steelyard.scoring.packing import CLS, SEP, TokenizedDecision, TokenizedRequest, lay_out
from steelyard.scoring.passes import PassDecision, pass_inputs
from steelyard.scoring.protocol import EngineStatus, Place
from steelyard.scoring.rows import fill_rows, tokens_of

_log = logging.getLogger(__name__)

E = TypeVar("E", bound=PassEngine)

#: Failures in a row after which no pass is sent any more.
MAX_FAILURES = 3
#: Seconds between two probes.
PROBE_S = 1.0
#: Longest pause before a remote engine that fails again and again gets passes again, in seconds.
MAX_PAUSE_S = 60.0
#: Seconds of work after which earlier failures no longer lengthen the pause.
_SETTLED_S = 60.0
#: How far probabilities of the probe may be apart: other weights are, other processors are not.
TOLERANCE = 0.02
_PROBE_OUTPUTS = ("logits", "marker_vectors", "pooled")


class RemoteEngine(PassEngine, Protocol):
    """An engine in another process."""

    @property
    def place(self) -> str:
        """Where it is, as the setting says it."""

    @property
    def is_loading(self) -> bool:
        """Whether its model is being loaded at the moment."""

    def open(self) -> None:
        """Make it ready: connect, load the model, compare its weights. May be called again."""

    def check(self) -> None:
        """Raise, cheaply, unless passes would run with the weights that they must have."""

    def interrupt(self) -> None:
        """End the passes that are on their way, with an error."""


@dataclass(eq=False, slots=True)
class _Used(Generic[E]):
    """An engine, and the passes that are in it."""

    engine: E
    n_users: int = 0
    is_retired: bool = False


@dataclass(slots=True)
class _Counts:
    passes: Counter[Place] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    n_changes: int = 0


class RoutedEngine:
    """Runs passes in a remote engine, or here; thread-safe.

    With ``falls_back`` passes that the remote engine fails run here. The engine here is then made at
    once: the moment of a failure is the wrong one to find out that it cannot be, and the remote
    engine's answers are compared with it before any pass is sent. Without, it is made only when passes
    are to run here anyway, and let go of when they change over to a remote engine. ``step`` does the
    probing; ``start`` has a thread do it.
    """

    def __init__(
        self,
        model: str,
        load_local: Callable[[], PassEngine],
        remote: RemoteEngine | None,
        *,
        falls_back: bool = True,
        on_close: Callable[[RoutedEngine], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        #: The model of the passes.
        self.model = model
        self._load_local = load_local
        self._falls_back = falls_back
        self._on_close = on_close
        self._clock = clock
        self._lock = threading.Lock()
        self._stepping = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._local = _Used(load_local()) if falls_back or remote is None else None
        self._chosen: _Used[RemoteEngine] | None = None if remote is None else _Used(remote)
        #: Where passes go; not the wanted one before that was opened.
        self._active: _Used[RemoteEngine] | None = None
        self._failure: SteelyardError | None = None
        self._n_failures = 0
        self._counts = _Counts()
        self._logged: str | None = None
        self._pause_s = PROBE_S
        self._next_open = clock()
        self._active_since = 0.0
        self._expected: Tensors | None = None
        self._thread: threading.Thread | None = None

    @property
    def status(self) -> EngineStatus:
        """Where passes go now."""
        with self._lock:
            chosen, active = self._chosen, self._active
            reason = None
            if chosen is not active and chosen is not None:
                reason = "It was not tried yet." if self._failure is None else str(self._failure)
            place: Place = "none" if self._local is None else "in-process"
            return EngineStatus(
                remote=None if chosen is None else chosen.engine.place,
                place=place if active is None else "triton",
                reason=reason,
                passes=dict(self._counts.passes),
                faults=dict(self._counts.faults),
                n_changes=self._counts.n_changes,
            )

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        """Run one pass and return the outputs asked for.

        Raises the remote engine's error where there is none here, ``EngineUnavailableError``
        when none can run it, and ``DeadlineExceededError`` when its caller is gone
        (``cancellation.only_while``).
        """
        # Before any engine is asked: a caller that is gone is no failure of a server.
        check_awaited()
        remote, local = self._enter()
        if remote is not None:
            try:
                answer = remote.engine.run(inputs, outputs)
            except SteelyardError as error:
                self._note_failure(remote, error)
                with self._lock:
                    local = self._enter_local()
                if local is None:
                    raise
            else:
                self._note_success("triton")
                return answer
            finally:
                self._leave(remote)
        if local is None:
            raise self._refusal()
        try:
            answer = local.engine.run(inputs, outputs)
        finally:
            self._leave(local)
        self._note_success("in-process")
        return answer

    def step(self) -> None:
        """Probe the remote engine once: open one that gets no passes, check one that does."""
        with self._stepping:
            with self._lock:
                if self._closed:
                    return
                chosen, active = self._chosen, self._active
                is_due = self._clock() >= self._next_open
            if active is not None:
                self._check(active)
            if chosen is not None and chosen is not active and is_due:
                self._open(chosen)

    def start(self) -> None:
        """Start a thread that probes until ``close``."""
        self._thread = threading.Thread(
            target=self._probe, name=f"steelyard-probe-{self.model}", daemon=True
        )
        self._thread.start()

    def attach(self, remote: RemoteEngine | None) -> None:
        """Ask for another remote engine, or for none; passes change over once it was opened.

        Passes on their way end where they began, and that engine is then closed. Until the new one
        can be opened passes go where they went.
        """
        local: _Used[PassEngine] | None = None
        # Made before it is needed, and outside of the lock: it takes a while. Looked for again then:
        # a change that ended meanwhile may have taken away the one there was.
        while not self._change(remote, local):
            local = _Used(self._load_local())
        if remote is None:
            self._log_change(logging.INFO, "Passes of %s run in this process.", self.model)
        self._wake.set()

    def close(self) -> None:
        """Release both engines; a later ``run`` raises ``EngineUnavailableError``."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            engines = {id(used): used for used in (self._chosen, self._active) if used is not None}
            self._active = self._chosen = None
            local, self._local = self._local, None
        self._wake.set()
        if self._thread is not None:
            # An opening under way is ended by the closing of its engine.
            for used in engines.values():
                used.engine.interrupt()
            self._thread.join()
        for used in engines.values():
            self._retire(used)
        if local is not None:
            local.engine.close()
        if self._on_close is not None:
            self._on_close(self)

    def _change(self, remote: RemoteEngine | None, local: _Used[PassEngine] | None) -> bool:
        """Change the chosen engine; return ``False`` where a local one is needed and none is loaded."""
        chosen = None if remote is None else _Used(remote)
        retired: list[_Used[Any] | None] = []
        with self._lock:
            if self._closed:
                retired += [chosen, local]
            elif chosen is None and self._local is None and local is None:
                return False
            else:
                if self._chosen is not self._active:
                    retired.append(self._chosen)
                self._chosen = chosen
                self._local = self._local or local
                self._failure = None
                self._next_open, self._pause_s = self._clock(), PROBE_S
                if chosen is None and self._active is not None:
                    retired.append(self._active)
                    self._active = None
                    self._counts.n_changes += 1
        for used in retired:
            if used is not None:
                self._retire(used)
        return True

    def _probe(self) -> None:
        while not self._closed:
            self._wake.wait(PROBE_S)
            self._wake.clear()
            if not self._closed:
                try:
                    self.step()
                except Exception:  # noqa: BLE001  the next probe may go better
                    _log.exception("The probe of %s failed.", self.model)

    def _open(self, chosen: _Used[RemoteEngine]) -> None:
        try:
            chosen.engine.open()
            self._compare(chosen.engine)
        except SteelyardError as error:
            with self._lock:
                if self._chosen is not chosen:
                    return
                is_known = str(self._failure) == str(error)
                self._failure = error
                # Each engine says when another try is worth it.
                self._next_open = self._clock() + max(PROBE_S, error.retry_after_s or 0.0)
            if not is_known:
                self._log_change(
                    logging.WARNING,
                    "%s is not used for %s: %s %s",
                    chosen.engine.place,
                    self.model,
                    error,
                    self._instead(),
                )
            return
        with self._lock:
            if self._chosen is not chosen or self._closed:
                return
            before, self._active = self._active, chosen
            self._failure, self._n_failures = None, 0
            self._active_since = self._clock()
            self._counts.n_changes += 1
            # Passes would fall back to a local engine that stays loaded.
            local = None
            if not self._falls_back:
                local, self._local = self._local, None
        self._log_change(logging.INFO, "Passes of %s run in %s.", self.model, chosen.engine.place)
        if before is not None:
            self._retire(before)
        if local is not None:
            self._retire(local)

    def _compare(self, remote: RemoteEngine) -> None:
        """Raise ``EngineUnavailableError`` where an engine answers the probe unlike the local one."""
        inputs = probe_inputs()
        outputs = remote.run(inputs, _PROBE_OUTPUTS)
        local = self._local
        if local is None:
            return
        if self._expected is None:
            self._expected = local.engine.run(inputs, _PROBE_OUTPUTS)
        apart = _distance(outputs, self._expected)
        if not apart <= TOLERANCE:
            raise EngineUnavailableError(
                f"{remote.place} answers a fixed question otherwise than these weights do "
                f"(probabilities {apart:.2g} apart); export its model again with `steelyard triton "
                "export`.",
                retry_after_s=30.0,
            )

    def _check(self, active: _Used[RemoteEngine]) -> None:
        try:
            active.engine.check()
        except DeadlineExceededError as error:
            self._note_failure(active, error, is_pass=False)
        except SteelyardError as error:
            self._drop(active, error)

    def _enter(self) -> tuple[_Used[RemoteEngine] | None, _Used[PassEngine] | None]:
        """Take part in the engine where passes go: the remote one, or the one here."""
        with self._lock:
            if self._closed:
                raise EngineUnavailableError(
                    "The scoring engine is closed; start the service again.", retry_after_s=1.0
                )
            remote = self._active
            if remote is None:
                return None, self._enter_local()
            remote.n_users += 1
            return remote, None

    def _enter_local(self) -> _Used[PassEngine] | None:
        """Take part in the engine here; the lock is held."""
        local = self._local
        if local is not None:
            local.n_users += 1
        return local

    def _leave(self, used: _Used[Any]) -> None:
        with self._lock:
            used.n_users -= 1
            is_last = used.is_retired and used.n_users == 0
        if is_last:
            used.engine.close()

    def _retire(self, used: _Used[Any]) -> None:
        with self._lock:
            used.is_retired = True
            is_free = used.n_users == 0
        if is_free:
            used.engine.close()

    def _note_success(self, place: Place) -> None:
        with self._lock:
            self._counts.passes[place] += 1
            if place == "triton":
                self._n_failures = 0

    def _note_failure(
        self, remote: _Used[RemoteEngine], error: SteelyardError, *, is_pass: bool = True
    ) -> None:
        with self._lock:
            if is_pass:
                self._counts.faults[error.code] += 1
            if self._active is not remote:
                return
            self._n_failures += 1
            is_over = self._n_failures >= MAX_FAILURES
        if is_over:
            self._drop(remote, error)
        else:
            self._wake.set()  # a probe tells a server that is gone from a pass that went wrong

    def _drop(self, remote: _Used[RemoteEngine], error: SteelyardError) -> None:
        """Send no more passes to an engine until it is opened again."""
        with self._lock:
            if self._active is not remote:
                return
            self._active = None
            self._failure = error
            self._n_failures = 0
            self._counts.n_changes += 1
            now = self._clock()
            # What works only for moments gets passes ever more rarely.
            is_settled = now - self._active_since >= _SETTLED_S
            self._next_open = now + (PROBE_S if is_settled else self._pause_s)
            self._pause_s = PROBE_S if is_settled else min(2 * self._pause_s, MAX_PAUSE_S)
            is_chosen = self._chosen is remote
        self._log_change(
            logging.WARNING,
            "%s failed passes of %s: %s %s",
            remote.engine.place,
            self.model,
            error,
            self._instead(),
        )
        remote.engine.interrupt()
        if not is_chosen:
            self._retire(remote)

    def _instead(self) -> str:
        if self._active is not None:
            return "They go where they went until it can be used."
        if self._local is not None:
            return "They run in this process until it works again."
        return "They are refused until it works again."

    def _refusal(self) -> SteelyardError:
        with self._lock:
            chosen, failure = self._chosen, self._failure
        if chosen is not None and chosen.engine.is_loading:
            return ModelWarmingError(
                f"The model {self.model} is still loading; send the request again after "
                "Retry-After."
            )
        if chosen is None or failure is None:
            return EngineUnavailableError(
                f"The engine of {self.model} is not there yet; send the request again after "
                "Retry-After.",
                retry_after_s=PROBE_S,
                is_unreached=True,
            )
        # A fresh one: an error that is raised twice keeps both tracebacks.
        return EngineUnavailableError(
            str(failure), retry_after_s=failure.retry_after_s, is_unreached=True
        )

    def _log_change(self, level: int, message: str, *parts: object) -> None:
        """Log a change, unless it repeats the last logged one."""
        line = message % parts
        if line != self._logged:
            self._logged = line
            _log.log(level, "%s", line)


def _distance(tensors: Tensors, expected: Tensors) -> float:
    """Return the largest difference of probabilities; infinite where shapes differ."""
    apart = 0.0
    for name in _PROBE_OUTPUTS:
        if tensors[name].shape != expected[name].shape:
            return float("inf")
    for logits, other in zip(tensors["logits"], expected["logits"], strict=True):
        apart = max(apart, float(np.abs(softmax(logits) - softmax(other)).max()))
    return apart


def probe_inputs() -> Tensors:
    """Return a small pass with every part of the graph in it; its texts mean nothing."""
    # Token ids that every vocabulary with the special tokens has.
    outcomes = ([CLS], [SEP], [CLS, SEP])
    decision = TokenizedDecision("ordinal", [SEP, CLS], outcomes)
    layout = lay_out(TokenizedRequest([CLS, SEP, SEP, CLS], [decision]))
    rows = fill_rows([tokens_of(layout)])
    start = np.int32(rows.starts[0])
    pass_decision = PassDecision("ordinal", layout.markers[0] + start, None, 0)
    return pass_inputs(rows, [pass_decision], [layout.context_channel])
