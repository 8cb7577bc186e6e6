"""Busy batching: requests that arrive while the engine works share its next call.

An idle engine never waits for company; a busy one takes everything that is waiting, up to a bound.
The queue in front of it is bounded too, so that an overload is told at once and not after a wait.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field

from steelyard.decisions.rendering import RenderedRequest
from steelyard.errors import (
    DeadlineExceededError,
    EngineUnavailableError,
    InternalError,
    SteelyardError,
)
from steelyard.scoring.cancellation import only_while
from steelyard.scoring.protocol import ScoredDecision, Scorer

#: Characters of rendered text scored in one call, unless a single request is larger.
BATCH_CHARACTERS = 32_768
#: Requests waiting, and their characters, beyond which new ones are refused.
MAX_QUEUE = 256
MAX_QUEUE_CHARACTERS = 8 * 1024 * 1024
#: Guess of the engine's speed until it has been measured, characters per second.
_FIRST_SPEED = 30_000.0
_SMOOTHING = 0.2


class ScoreFuture(Future[list[ScoredDecision]]):
    """The future of one request."""

    started_at: float


@dataclass(slots=True)
class _Waiting:
    request: RenderedRequest
    characters: int
    expires_at: float | None
    answer: ScoreFuture = field(default_factory=ScoreFuture)


class Batcher:
    """A queue and one thread in front of a scorer; thread-safe.

    Which requests share a call changes no answer: scorers are batch-invariant.
    """

    def __init__(self, scorer: Scorer, *, max_queue: int = MAX_QUEUE) -> None:
        self._scorer = scorer
        self._max_queue = max_queue
        self._waiting: deque[_Waiting] = deque()
        self._characters = 0
        self._speed = _FIRST_SPEED
        self._changed = threading.Condition()
        self._closed = False
        self._n_calls = 0
        self._call_started: float | None = None
        self._thread = threading.Thread(target=self._work, name="steelyard-scorer", daemon=True)
        self._thread.start()

    def submit(self, request: RenderedRequest, deadline_s: float | None = None) -> ScoreFuture:
        """Queue a request; raises ``EngineUnavailableError`` when the queue is full or closed."""
        expires_at = None if deadline_s is None else time.monotonic() + deadline_s
        entry = _Waiting(request, _characters(request), expires_at)
        with self._changed:
            self._check_room(entry)
            self._waiting.append(entry)
            self._characters += entry.characters
            self._changed.notify()
        return entry.answer

    @property
    def n_waiting(self) -> int:
        """Requests that wait for the engine."""
        with self._changed:
            return len(self._waiting)

    @property
    def max_queue(self) -> int:
        """Requests that may wait."""
        return self._max_queue

    @property
    def running_call(self) -> tuple[int, float] | None:
        """The call that the engine works on: its number, and for how many seconds; or ``None``.

        A call that stays the same over seconds tells an engine that hangs from one that is busy.
        """
        with self._changed:
            if self._call_started is None:
                return None
            return self._n_calls, time.monotonic() - self._call_started

    def check_room(self, request: RenderedRequest) -> None:
        """Refuse a request as ``submit`` would now; a moment later there may be room, or none."""
        with self._changed:
            self._check_room(_Waiting(request, _characters(request), None))

    def close(self, timeout_s: float | None = None) -> bool:
        """Answer what is queued, refuse what comes, and stop the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            return True
        with self._changed:
            abandoned, self._waiting, self._characters = self._waiting, deque(), 0
        for entry in abandoned:
            if entry.answer.set_running_or_notify_cancel():
                message = "The service stopped before the request was scored; send it again."
                entry.answer.set_exception(EngineUnavailableError(message))
        return False

    def _check_room(self, entry: _Waiting) -> None:
        if self._closed:
            message = "The service is stopping; send the request to another instance."
            raise EngineUnavailableError(message, retry_after_s=1.0)
        if self._is_full(entry):
            self._drop_cancelled()
        if self._is_full(entry):
            message = "The scoring queue is full; send the request again after Retry-After."
            wait = min(max(self._characters / self._speed, 1.0), 20.0)
            raise EngineUnavailableError(message, retry_after_s=round(wait, 1))

    def _is_full(self, entry: _Waiting) -> bool:
        if not self._waiting:  # a request larger than the bound is taken when it is alone
            return False
        is_too_much = self._characters + entry.characters > MAX_QUEUE_CHARACTERS
        return is_too_much or len(self._waiting) >= self._max_queue

    def _drop_cancelled(self) -> None:
        self._waiting = deque(entry for entry in self._waiting if not entry.answer.cancelled())
        self._characters = sum(entry.characters for entry in self._waiting)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                batch = self._take()
            live = [entry for entry in batch if entry.answer.set_running_or_notify_cancel()]
            batch = [entry for entry in live if not _is_late(entry)]
            started_at = time.perf_counter()
            for entry in batch:
                entry.answer.started_at = started_at
            self._answer(batch)

    def _take(self) -> list[_Waiting]:
        batch = [self._waiting.popleft()]
        size = batch[0].characters
        while self._waiting and size + self._waiting[0].characters <= BATCH_CHARACTERS:
            size += self._waiting[0].characters
            batch.append(self._waiting.popleft())
        self._characters -= size
        return batch

    def _answer(self, batch: Sequence[_Waiting]) -> None:
        if not batch:
            return
        started = time.monotonic()
        try:
            scored = self._score(batch)
        except BaseException as error:  # noqa: BLE001  whatever it is, someone waits for it
            if len(batch) == 1:
                batch[0].answer.set_exception(_as_failure(error))
                return
            # One request may be to blame; the others must not pay for it.
            for entry in batch:
                if not _is_late(entry):
                    self._answer([entry])
            return
        for entry, decisions in zip(batch, scored, strict=True):
            entry.answer.set_result(decisions)
        speed = sum(entry.characters for entry in batch) / max(time.monotonic() - started, 1e-4)
        with self._changed:
            self._speed += _SMOOTHING * (speed - self._speed)

    def _score(self, batch: Sequence[_Waiting]) -> list[list[ScoredDecision]]:
        with self._changed:
            self._n_calls += 1
            self._call_started = time.monotonic()
        try:
            with only_while(lambda: any(not _is_past(entry) for entry in batch)):
                scored = self._scorer.score([entry.request for entry in batch])
        finally:
            with self._changed:
                self._call_started = None
        if len(scored) != len(batch):
            raise InternalError(
                f"The engine answered {len(scored)} of {len(batch)} requests; report it."
            )
        return scored


def _as_failure(error: BaseException) -> Exception:
    """Return what a future may carry for an error of the engine.

    What would end a thread, or mean to who waits that waiting itself ended, is a fault like others.
    """
    misread = (StopIteration, TimeoutError, CancelledError)
    if isinstance(error, SteelyardError) or (
        isinstance(error, Exception) and not isinstance(error, misread)
    ):
        return error
    fault = InternalError(f"The engine ended its call with {type(error).__name__}; report it.")
    fault.__cause__ = error
    return fault


def _is_past(entry: _Waiting) -> bool:
    return entry.expires_at is not None and entry.expires_at < time.monotonic()


def _is_late(entry: _Waiting) -> bool:
    """Return whether an entry's time is up; it is then answered so."""
    if not _is_past(entry):
        return False
    message = "The request waited past its deadline; send it again."
    entry.answer.set_exception(DeadlineExceededError(message))
    return True


def _characters(request: RenderedRequest) -> int:
    return len(request.context) + sum(
        len(decision.question) + sum(map(len, decision.outcomes)) for decision in request.decisions
    )
