"""Busy batching: requests that arrive while the engine works share its next call.

Short requests and long ones have a lane each, so that no request waits for the whole of another
caller's long text: the long lane stops between its passes while short requests wait. An idle lane never
waits for company; a busy one takes waiting requests, up to a bound, each account in its turn. The queue
is bounded in length and in the wait that is expected, so that an overload is refused at once and not
after a wait.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from steelyard import tracing
from steelyard.decisions.rendering import RenderedRequest
from steelyard.errors import (
    DeadlineExceededError,
    EngineUnavailableError,
    InternalError,
    SteelyardError,
)
from steelyard.memory import trim_memory
from steelyard.scoring.cancellation import before_pass, unwanted
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.scoring.shares import TURN_CHARACTERS, FairQueue, Share
from steelyard.waiting import PASSES

#: Characters of rendered text up to which a request is short, about a pass of the engine.
SHORT_CHARACTERS = 2_048
#: Characters of a call of short ones: longer calls answer hardly more a second, and who comes
#: meanwhile waits for their end.
SHORT_BATCH_CHARACTERS = 1_024
#: Characters of a call of longer ones, unless a single request is larger.
BATCH_CHARACTERS = 32_768
#: Requests waiting, and their characters, beyond which new ones are refused.
MAX_QUEUE = 256
MAX_QUEUE_CHARACTERS = 8 * 1024 * 1024
#: Requests of the public that may wait.
MAX_PUBLIC_QUEUE = 8
#: Expected seconds of waiting beyond which a request with a deadline is refused.
MAX_WAIT_S = 2.0
#: Guess of the engine's speed until it has been measured, characters per second.
_FIRST_SPEED = 30_000.0
_SMOOTHING = 0.2
#: A request may go between the passes of one this many times as long.
_LONGER = 4
#: Characters of a call after which free memory goes back to the system.
_LARGE_CHARACTERS = BATCH_CHARACTERS // 2
#: Seconds without a request after which the memory of passes goes back.
IDLE_S = 10.0
#: Seconds for which the long lane stops between two passes, at most.
_STOP_S = 1.0
#: Bounds of Retry-After, in seconds.
_LEAST_RETRY_S, _MOST_RETRY_S = 1.0, 20.0
_NOBODY = Share()


class ScoreFuture(Future[list[ScoredDecision]]):
    """The future of one request."""

    started_at: float


#: The future of a request that is not queued.
_UNQUEUED = ScoreFuture()


@dataclass(slots=True)
class _Waiting:
    request: RenderedRequest
    characters: int
    expires_at: float | None
    share: Share = _NOBODY
    answer: ScoreFuture = field(default_factory=ScoreFuture)
    #: The span that waits for it.
    origin: Any = None


@dataclass(slots=True)
class _Call:
    """A call of the engine."""

    batch: Sequence[_Waiting]
    started: float
    characters: int
    #: When its caller stops waiting; infinite without a deadline.
    expires_at: float
    #: Characters that others may run between its passes, in return for its own.
    owed: int = 0

    @property
    def shares(self) -> set[Share]:
        return {entry.share for entry in self.batch}

    @property
    def longest(self) -> int:
        return max(entry.characters for entry in self.batch)


class _Lane:
    """The queue of one thread, and its running work."""

    def __init__(self, batch_characters: int, lock: threading.RLock) -> None:
        self.batch_characters = batch_characters
        #: What its thread waits for; the other lane's sleeps on.
        self.filled = threading.Condition(lock)
        self.accounts: FairQueue[_Waiting] = FairQueue()
        self.public: FairQueue[_Waiting] = FairQueue()
        #: What came while nothing waited and nothing ran: its thread takes it past the queues.
        self.lone: _Waiting | None = None
        #: Calls that run, each between the passes of the one before.
        self.calls: list[_Call] = []
        self.n_ended = 0
        self.pass_number = 0
        self.pass_started: float | None = None

    @property
    def n_waiting(self) -> int:
        return self.accounts.n_entries + self.public.n_entries + (self.lone is not None)

    @property
    def is_busy(self) -> bool:
        return bool(self.calls or self.accounts or self.lone is not None)

    def queue_of(self, share: Share) -> FairQueue[_Waiting]:
        return self.public if share.is_public else self.accounts

    def queue_lone(self) -> None:
        """Queue a request that is no longer alone."""
        if self.lone is not None:
            self.queue_of(self.lone.share).push(self.lone)
            self.lone = None

    def take(self) -> list[_Waiting]:
        if self.lone is not None:
            lone, self.lone = self.lone, None
            return [lone]
        queue = self.accounts or self.public
        # With others beside, a turn of one account at a time: each of them then waits less.
        is_shared = len(queue.shares) > 1
        return queue.take(TURN_CHARACTERS if is_shared else self.batch_characters)


class Batcher:
    """A queue and two threads in front of a scorer; thread-safe.

    Which requests share a call, and which run between its passes, changes no answer: scorers are
    batch-invariant.
    """

    def __init__(self, scorer: Scorer, *, max_queue: int = MAX_QUEUE) -> None:
        self._scorer = scorer
        #: Requests that may wait.
        self.max_queue = max_queue
        lock = threading.RLock()
        short = getattr(scorer, "call_characters", SHORT_BATCH_CHARACTERS)
        self._short = _Lane(short, lock)
        self._long = _Lane(BATCH_CHARACTERS, lock)
        self._lanes = (self._short, self._long)
        self._speed = _FIRST_SPEED
        #: Held to look or to change; notified when a call has ended.
        self._changed = threading.Condition(lock)
        self._closed = False
        self._n_passes = 0
        self._threads = [
            threading.Thread(target=self._work, args=(lane,), name="steelyard-scorer", daemon=True)
            for lane in self._lanes
        ]
        for thread in self._threads:
            thread.start()

    #: It asks no other server.
    rest_s = 0.0

    def end_rest(self) -> None:
        """Do nothing: no other server is left alone here."""

    def submit(
        self, request: RenderedRequest, deadline_s: float | None = None, share: Share = _NOBODY
    ) -> ScoreFuture:
        """Queue a request; raises ``EngineUnavailableError`` when it would wait for too long.

        Without a deadline it may wait as long as there is room in the queue.
        """
        expires_at = None if deadline_s is None else time.monotonic() + deadline_s
        if share.account and not (share.is_public or request.owner):
            request = replace(request, owner=share.account)
        entry = _Waiting(request, _characters(request), expires_at, share)
        if tracing.recorder is not None:
            entry.origin = tracing.origin()
        lane = self._lane_of(entry)
        with self._changed:
            if not (self._closed or lane.calls or self._short.n_waiting or self._long.n_waiting):
                # Nothing waits and nothing runs that it would wait for: there is room.
                lane.lone = entry
                lane.filled.notify()
                return entry.answer
            evicted = self._make_room(entry) if self._check_room(entry) else None
            lane.queue_of(share).push(entry)
            lane.filled.notify()
        if evicted is not None and evicted.answer.set_running_or_notify_cancel():
            evicted.answer.set_exception(
                EngineUnavailableError(
                    "The scoring queue is full, and others have fewer requests in it; send the "
                    "request again after Retry-After.",
                    retry_after_s=self._retry_after_s(),
                    is_unreached=True,
                )
            )
        return entry.answer

    @property
    def n_waiting(self) -> int:
        """Requests that wait for the engine."""
        with self._changed:
            return sum(lane.n_waiting for lane in self._lanes)

    @property
    def running_call(self) -> tuple[int, float] | None:
        """The longest pass that the engine works on: its number, and its seconds; or ``None``.

        One that stays the same over seconds tells an engine that hangs from one that is busy.
        """
        with self._changed:
            running = [
                (lane.pass_started, lane.pass_number)
                for lane in self._lanes
                if lane.pass_started is not None
            ]
            if not running:
                return None
            started, number = min(running)
            return number, time.monotonic() - started

    def check_room(self, request: RenderedRequest, share: Share = _NOBODY) -> None:
        """Refuse a request that waits for answers as ``submit`` would now.

        A moment later there may be room, or none.
        """
        expires_at = time.monotonic() + MAX_WAIT_S
        with self._changed:
            self._check_room(_Waiting(request, _characters(request), expires_at, share, _UNQUEUED))

    def close(self, timeout_s: float | None = None) -> bool:
        """Answer the queue, refuse new requests, and stop the threads."""
        with self._changed:
            self._closed = True
            for lane in self._lanes:
                lane.filled.notify()
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(None if ends_at is None else max(ends_at - time.monotonic(), 0.0))
        if not any(thread.is_alive() for thread in self._threads):
            return True
        with self._changed:
            for lane in self._lanes:
                lane.queue_lone()
            abandoned = [entry for lane in self._lanes for entry in (*lane.accounts, *lane.public)]
            for lane in self._lanes:
                lane.accounts, lane.public = FairQueue(), FairQueue()
        for entry in abandoned:
            if entry.answer.set_running_or_notify_cancel():
                message = "The service stopped before the request was scored; send it again."
                entry.answer.set_exception(EngineUnavailableError(message))
        return False

    def _lane_of(self, entry: _Waiting) -> _Lane:
        return self._short if entry.characters <= SHORT_CHARACTERS else self._long

    def _queues_of(self, share: Share) -> list[FairQueue[_Waiting]]:
        return [lane.queue_of(share) for lane in self._lanes]

    def _check_room(self, entry: _Waiting) -> bool:
        """Refuse a request that would wait for too long; return whether another's place is to be taken."""
        if self._closed:
            message = "The service is stopping; send the request to another instance."
            raise EngineUnavailableError(message, retry_after_s=_LEAST_RETRY_S)
        for lane in self._lanes:
            lane.queue_lone()
        queues = self._queues_of(entry.share)
        is_full = self._is_full(entry)
        if is_full:
            for queue in queues:
                queue.keep(lambda other: not other.answer.cancelled())
            # With room for none, an account that has fewer than another may take one of its places.
            own = sum(queue.n_of(entry.share) for queue in queues)
            has_fewer = own + 1 < max(queue.most() for queue in queues)
            is_full = self._is_full(entry)
            if is_full and not has_fewer:
                message = "The scoring queue is full; send the request again after Retry-After."
                raise EngineUnavailableError(message, retry_after_s=self._retry_after_s())
        if entry.expires_at is None:
            return is_full
        bound_s = min(MAX_WAIT_S, entry.expires_at - time.monotonic())
        wait_s = self._expected_wait_s(entry)
        if wait_s > bound_s >= 0:
            message = (
                f"The request would wait about {wait_s:.1f} s for the model, and may wait "
                f"{bound_s:.1f} s; send it again after Retry-After."
            )
            raise EngineUnavailableError(
                message, retry_after_s=round(max(wait_s - bound_s, 0.1), 1), is_unreached=True
            )
        return is_full

    def _make_room(self, entry: _Waiting) -> _Waiting | None:
        return max(self._queues_of(entry.share), key=FairQueue.most).take_last_of_longest()

    def _is_full(self, entry: _Waiting) -> bool:
        queues = self._queues_of(entry.share)
        n_waiting = sum(queue.n_entries for queue in queues)
        if not n_waiting:  # a request larger than the bound is taken when it is alone
            return False
        bound = MAX_PUBLIC_QUEUE if entry.share.is_public else self.max_queue
        characters = sum(queue.characters for queue in queues) + entry.characters
        return characters > MAX_QUEUE_CHARACTERS or n_waiting >= bound

    def _retry_after_s(self) -> float:
        waiting = sum(lane.accounts.characters + lane.public.characters for lane in self._lanes)
        return round(min(max(waiting / self._speed, _LEAST_RETRY_S), _MOST_RETRY_S), 1)

    def _expected_wait_s(self, entry: _Waiting) -> float:
        """Return the seconds until a request would begin (Little, 1961)."""
        lane = self._lane_of(entry)
        # It goes between the passes of longer requests.
        bound = entry.characters * _LONGER if lane is self._long else math.inf
        left_s = 0.0
        if lane.calls and lane.calls[0].longest < bound:
            call = lane.calls[0]
            left_s = max(call.characters / self._speed - (time.monotonic() - call.started), 0.0)
        if entry.share.is_public:
            return left_s + (lane.accounts.characters + lane.public.characters) / self._speed
        return left_s + lane.accounts.characters_before(entry, bound) / self._speed

    def _work(self, lane: _Lane) -> None:
        give_back: Callable[[], None] | None = getattr(self._scorer, "give_back", None)
        idle_s: float | None = None
        while True:
            with lane.filled:
                is_idle = not lane.filled.wait_for(lambda: lane.n_waiting or self._closed, idle_s)
                batch = [] if is_idle else lane.take()
            idle_s = None
            if is_idle and give_back is not None:
                give_back()
                trim_memory()
                continue
            if not batch:
                return
            self._begin(lane, batch)
            idle_s = IDLE_S if give_back else None
            if sum(entry.characters for entry in batch) >= _LARGE_CHARACTERS:
                # Long texts leave hundreds of megabytes of small free blocks behind.
                trim_memory()

    def _begin(self, lane: _Lane, batch: Sequence[_Waiting]) -> None:
        live: list[_Waiting] = []
        now, started_at = time.monotonic(), time.perf_counter()
        for entry in batch:
            if entry.answer.set_running_or_notify_cancel() and not _is_late(entry, now):
                entry.answer.started_at = started_at
                live.append(entry)
        self._answer(lane, live)

    def _answer(self, lane: _Lane, batch: Sequence[_Waiting]) -> None:
        if not batch:
            return
        started = time.monotonic()
        try:
            scored = self._score(lane, batch)
        except BaseException as error:  # noqa: BLE001  whatever it is, someone waits for it
            if len(batch) == 1:
                batch[0].answer.set_exception(_as_failure(error))
                return
            # One request may be to blame; the others must not pay for it.
            for entry in batch:
                if not _is_late(entry, time.monotonic()):
                    self._answer(lane, [entry])
            return
        characters = 0
        for entry, decisions in zip(batch, scored, strict=True):
            entry.answer.set_result(decisions)
            characters += entry.characters
        if lane is self._short or not self._short.is_busy:
            speed = characters / max(time.monotonic() - started, 1e-4)
            with self._changed:
                self._speed += _SMOOTHING * (speed - self._speed)

    def _score(self, lane: _Lane, batch: Sequence[_Waiting]) -> list[list[ScoredDecision]]:
        requests, characters, expires_at = [], 0, 0.0
        for entry in batch:
            requests.append(entry.request)
            characters += entry.characters
            expires_at = max(expires_at, math.inf if entry.expires_at is None else entry.expires_at)
        call = _Call(batch, time.monotonic(), characters, expires_at)
        running = before_pass.set(partial(self._between, lane, call))
        with self._changed:
            lane.calls.append(call)
            self._note_pass(lane)
        try:
            if tracing.recorder is None:
                with PASSES.running():
                    scored = self._scorer.score(requests)
            else:
                size = {
                    "steelyard.pass.requests": len(batch),
                    "steelyard.pass.characters": characters,
                }
                origins = [entry.origin for entry in batch]
                with PASSES.running(), tracing.span("pass", size, origins=origins):
                    scored = self._scorer.score(requests)
        finally:
            before_pass.reset(running)
            with self._changed:
                lane.calls.pop()
                lane.n_ended += 1
                if lane.calls:
                    self._note_pass(lane)
                else:
                    lane.pass_started = None
                self._changed.notify_all()
        if len(scored) != len(batch):
            raise InternalError(
                f"The engine answered {len(scored)} of {len(batch)} requests; report it."
            )
        return scored

    def _note_pass(self, lane: _Lane) -> None:
        self._n_passes += 1
        lane.pass_number = self._n_passes
        lane.pass_started = time.monotonic()

    def _between(self, lane: _Lane, call: _Call) -> None:
        """Run short requests, and shorter ones of the lane, before a long call's next pass.

        Raises ``DeadlineExceededError`` when the caller of the work is gone.
        """
        if call.expires_at < time.monotonic():
            raise unwanted()
        with self._changed:
            self._n_passes += 1
            lane.pass_number, lane.pass_started = self._n_passes, time.monotonic()
            if lane is self._short:
                return
            seen = self._short.n_ended
            self._changed.wait_for(
                lambda: not self._short.is_busy or self._short.n_ended > seen, _STOP_S
            )
            self._note_pass(lane)
            call.owed += SHORT_CHARACTERS
            batch = self._take_beside(lane, call) if call.owed >= 0 else []
        if batch:
            call.owed -= sum(entry.characters for entry in batch)
            self._begin(lane, batch)

    def _take_beside(self, lane: _Lane, call: _Call) -> list[_Waiting]:
        longest = call.longest
        is_public = any(share.is_public for share in call.shares)

        def may_go(entry: _Waiting) -> bool:
            return is_public or entry.characters * _LONGER <= longest

        return lane.accounts.take(lane.batch_characters // _LONGER, may_go)


def _as_failure(error: BaseException) -> Exception:
    """Return an engine's error as a future may carry it.

    An error that would end a thread, or tell a waiter that waiting itself ended, is a fault like others.
    """
    misread = (StopIteration, TimeoutError, CancelledError)
    if isinstance(error, SteelyardError) or (
        isinstance(error, Exception) and not isinstance(error, misread)
    ):
        return error
    fault = InternalError(f"The engine ended its call with {type(error).__name__}; report it.")
    fault.__cause__ = error
    return fault


def _is_late(entry: _Waiting, now: float) -> bool:
    """Return whether an entry's time is up; it is then answered so."""
    if entry.expires_at is None or entry.expires_at >= now:
        return False
    message = "The request waited past its deadline; send it again."
    entry.answer.set_exception(DeadlineExceededError(message))
    return True


def _characters(request: RenderedRequest) -> int:
    n_characters = len(request.context)
    for decision in request.decisions:
        n_characters += len(decision.question) + sum(map(len, decision.outcomes))
    return n_characters
