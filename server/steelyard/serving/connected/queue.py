"""Requests to a connected model: their queue, how many run at once, and when one is given up."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from steelyard.decisions.rendering import RenderedRequest
from steelyard.errors import EngineUnavailableError, SteelyardError
from steelyard.errors.kinds import UnprocessableError
from steelyard.scoring.batching import ScoreFuture
from steelyard.scoring.protocol import ScoredDecision
from steelyard.scoring.shares import FairQueue, Share
from steelyard.serving.connected.answers import Probabilities, UnusableAnswerError
from steelyard.serving.connected.breaker import Breaker, RemoteFailureError
from steelyard.serving.connected.wire import ModelEngine, ModelWire

_log = logging.getLogger(__name__)
_RETRY_S = 2.0
_NOBODY = Share()
#: The weight of the last answer in the usual time of a decision.
_NEWEST_SHARE = 0.2


class Loop:
    """A thread with an event loop, which all connected models of a process share."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="steelyard-connected", daemon=True
        )
        self._thread.start()

    def call(self, work: Any, *given: Any) -> bool:
        """Call something soon, on the loop's thread; return whether it is not closed yet."""
        try:
            self._loop.call_soon_threadsafe(work, *given)
        except RuntimeError:
            return False
        return True

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine and do not wait for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Cancel running requests, and end the thread."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


@dataclass(slots=True, eq=False)
class _Waiting:
    request: RenderedRequest
    deadline_s: float | None
    share: Share
    characters: int
    future: ScoreFuture = field(default_factory=ScoreFuture)


class ConnectedQueue:
    """Requests to one connected model, as many at once as it takes, accounts in turns; thread-safe."""

    #: One call that takes long holds up no other.
    running_call = None

    def __init__(
        self,
        name: str,
        wire: ModelWire,
        remote: ModelEngine,
        loop: Loop,
        *,
        concurrency: int,
        timeout_s: float,
        max_queue: int,
    ) -> None:
        self._name = name
        self._wire = wire
        self.remote = remote
        self._loop = loop
        self._concurrency = concurrency
        self._timeout_s = timeout_s
        self.max_queue = max_queue
        self.breaker = Breaker()
        self._lock = threading.Lock()
        self._queue: FairQueue[_Waiting] = FairQueue()
        self._n_running = 0
        #: Decisions that wait or are under way, and seconds that one usually takes; 0 while not known.
        self._n_decisions, self._n_answers = 0, 0
        self._usual_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def n_waiting(self) -> int:
        """Requests that wait for a place."""
        return len(self._queue)

    @property
    def n_unanswered(self) -> int:
        """Decisions that wait or are under way."""
        return self._n_decisions

    @property
    def rest_s(self) -> float:
        """Seconds for which its server is left alone."""
        return self.breaker.rest_s

    def end_rest(self) -> None:
        """Allow the next request to try, though the server is left alone."""
        self._loop.call(self.breaker.end_rest)

    def check_room(self, request: RenderedRequest, share: Share = _NOBODY) -> None:  # noqa: ARG002
        """Refuse a request as ``submit`` would now."""
        with self._lock:
            if len(self._queue) >= self.max_queue and self._queue.n_of(share) >= self._queue.most():
                raise self._full()

    def submit(
        self, request: RenderedRequest, deadline_s: float | None = None, share: Share = _NOBODY
    ) -> ScoreFuture:
        """Queue a request; the future gives one scored decision per decision.

        While the breaker is open, a request without a deadline waits; one with a deadline fails. One that
        others keep from its deadline is refused at once, as far as earlier answers tell.
        """
        texts = (decision.instructions for decision in request.decisions)
        size = len(request.context) + sum(map(len, texts))
        if share.account and not (share.is_public or request.owner):
            request = replace(request, owner=share.account)
        entry = _Waiting(request, deadline_s, share, size)
        with self._lock:
            self._check_deadline(entry)
            evicted = None
            if len(self._queue) >= self.max_queue:
                if self._queue.n_of(share) >= self._queue.most():
                    raise self._full()
                evicted = self._queue.take_last_of_longest()
            self._queue.push(entry)
            self._n_decisions += len(request.decisions)
            if evicted is not None:
                self._n_decisions -= len(evicted.request.decisions)
        if evicted is not None:
            _resolve(evicted.future, self._full())
        if not self._loop.call(self._begin):
            raise EngineUnavailableError("The server is ending; ask again once it runs.")
        return entry.future

    def warm_up(self) -> None:
        """Load a model of this machine before a request comes."""
        load = getattr(self.remote, "warm_up", None)
        if load is not None:
            self._loop.begin(load())

    def close(self) -> None:
        """Cancel its requests, and close the connections to its server."""
        self._loop.run(self._close())

    async def _close(self) -> None:
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await self.remote.close()

    def _full(self) -> EngineUnavailableError:
        return EngineUnavailableError(
            f"Too many requests wait for {self._name}; send the request again after Retry-After, or "
            "name another model.",
            retry_after_s=_RETRY_S,
            is_unreached=True,
        )

    def _check_deadline(self, entry: _Waiting) -> None:
        """Refuse a request whose deadline is over before those are answered that came before it."""
        if entry.deadline_s is None or not self._n_decisions:
            return
        before_s = self._usual_s * self._n_decisions / self._concurrency
        if before_s + self._usual_s > entry.deadline_s:
            n_requests = len(self._queue) + self._n_running
            raise EngineUnavailableError(
                f"{n_requests} requests wait for {self._name}, which takes about {before_s:.0f} s for them; "
                "send the request again after Retry-After, or name another model.",
                retry_after_s=max(before_s, _RETRY_S),
                is_unreached=True,
            )

    def _begin(self) -> None:
        """Begin as many requests as there is room for; on the loop's thread."""
        while self._n_running < self._concurrency:
            with self._lock:
                taken = self._queue.take(1)
            if not taken:
                return
            for entry in taken:
                if self._is_closed:
                    _resolve(entry.future, self._closing())
                if entry.future.done():  # its caller gave it up
                    self._leave(entry)
                    continue
                self._n_running += 1
                task = asyncio.get_running_loop().create_task(self._answer(entry))
                entry.future.add_done_callback(partial(self._give_up, task))
                self._tasks.add(task)
                task.add_done_callback(partial(self._end, entry))

    def _leave(self, entry: _Waiting) -> None:
        with self._lock:
            self._n_decisions -= len(entry.request.decisions)

    def _end(self, entry: _Waiting, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._leave(entry)
        self._n_running -= 1
        self._begin()

    def _give_up(self, task: asyncio.Task[None], future: ScoreFuture) -> None:
        if future.cancelled():
            self._loop.call(task.cancel)

    async def _answer(self, entry: _Waiting) -> None:
        """Ask the server, and resolve an entry's future whatever happens."""
        outcome: list[ScoredDecision] | BaseException
        try:
            outcome = await self._ask(entry)
        except asyncio.CancelledError:
            outcome = self._closing()
        except Exception as error:  # noqa: BLE001  somebody waits for the future
            if not isinstance(error, SteelyardError):
                _log.exception("Asking %s failed.", self._name)
            outcome = error
        _resolve(entry.future, outcome)

    def _closing(self) -> EngineUnavailableError:
        return EngineUnavailableError(f"{self._name} was not asked: it is being closed.")

    async def _ask(self, entry: _Waiting) -> list[ScoredDecision]:
        if entry.deadline_s is None:  # a job's request is not refused for others' failures
            await self.breaker.wait_out()
        is_try = self.breaker.check(self._name)
        entry.future.started_at = perf_counter()
        bound_s = min(self._timeout_s, entry.deadline_s or self._timeout_s)
        try:
            async with asyncio.timeout(bound_s):
                answers = await self._wire.score(entry.request, self.remote.post)
        except TimeoutError as error:
            if isinstance(error, SteelyardError):
                raise
            message = (
                f"The server of {self._name} did not answer within {bound_s:.3g} s; send the request "
                "again, or name another model."
            )
            self.breaker.failed(message, is_try=is_try)
            raise EngineUnavailableError(message) from error
        except UnusableAnswerError as error:
            self.breaker.failed(error.message, is_try=is_try)
            raise
        except RemoteFailureError as error:
            if error.is_servers:
                self.breaker.failed(error.message, is_try=is_try)
            elif is_try:  # it answers
                self.breaker.succeeded()
            raise
        except UnprocessableError:  # the request is at fault: its server answers
            if is_try:
                self.breaker.succeeded()
            raise
        except BaseException:
            if is_try:
                self.breaker.gave_up()
            raise
        self.breaker.succeeded()
        self._note_duration(perf_counter() - entry.future.started_at, len(answers))
        pairs = zip(entry.request.decisions, answers, strict=True)
        return [_scored(answer, len(decision.outcomes)) for decision, answer in pairs]

    def _note_duration(self, seconds: float, n_decisions: int) -> None:
        """Note how long an answer took; the first may have waited for the model to be loaded."""
        newest = seconds / max(n_decisions, 1)
        self._n_answers += 1
        if self._n_answers > 1:
            share = _NEWEST_SHARE if self._usual_s else 1.0
            self._usual_s += share * (newest - self._usual_s)


def _scored(answer: Probabilities | ScoredDecision, n_outcomes: int) -> ScoredDecision:
    if isinstance(answer, ScoredDecision):
        return answer
    # In float64, so that 0.9 of the other server is 0.9 here.
    return ScoredDecision(np.log(answer), np.zeros((n_outcomes, 0), dtype=np.float32))


def _resolve(future: ScoreFuture, outcome: list[ScoredDecision] | BaseException) -> None:
    with suppress(InvalidStateError):  # given up by its caller
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


async def _cancel_all() -> None:
    own = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not own]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
