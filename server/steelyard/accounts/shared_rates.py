"""Counters of the last minute that several hosts share through their database.

A host takes a slice of a caller's minute ahead and spends it without asking again. A slice grows with
the caller's latest requests through this host and holds for two seconds, so a caller costs the database
about one small write in two seconds for each host, however much it sends; near the limit, slices are as
small as the request. The rest of a slice is given back with the next.

So a caller exceeds its limit by at most the slices of two seconds, and a caller that changes from host
to host may be refused a twentieth of its limit early.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from sqlalchemy import Connection

from steelyard.accounts.rate_limits import MAX_CALLERS, RateWindows, seconds_until_room
from steelyard.accounts.rate_store import RateRequest, Slice, lease, sweep
from steelyard.errors import StorageUnavailableError
from steelyard.recent import Recent
from steelyard.storage.writer import Writer

_log = logging.getLogger(__name__)

#: Seconds for which a slice may be spent.
SLICE_S = 2.0
#: The part of a limit that a slice takes ahead at most.
_AHEAD_PART = 20
#: Seconds for which a refusal holds without asking again.
_REFUSED_S = 1.0
#: Seconds that a request waits for a slice before this host counts it alone.
_WAIT_S = 2.0
#: Seconds for which this host counts alone once the database could not.
_ALONE_S = 1.0
#: Callers in one transaction.
_MOST_AT_ONCE = 500
_SWEEP_S = 60.0


@dataclass(slots=True)
class _Waiting:
    cost: int
    #: ``None`` when it was counted, else the seconds until there is room.
    wait_s: Future[float | None] = field(default_factory=Future)


@dataclass(slots=True)
class _Caller:
    """A caller's minute as this host counts it."""

    what: str
    who: str
    limit: int
    units: int = 0  # of the slice, as it was taken
    left: int = 0
    number: int = 0  # of the window that it was taken of
    ends_at: float = 0.0
    waiting: deque[_Waiting] = field(default_factory=deque)
    n_requested: int = 0  # how many of them the transaction under way asks for
    is_asking: bool = False
    refused_cost: int = 0
    refused_until: float = 0.0
    has_room_at: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.what}/{self.who}/{self.limit}"

    def ahead(self, now: float) -> int:
        """Return how much to lease beyond the need: more where the last slice ran out."""
        spent = self.units - self.left
        if now < self.ends_at:
            units = 2 * spent
        elif now < self.ends_at + SLICE_S:
            units = spent // 2
        else:
            units = 0
        return min(units, self.limit // _AHEAD_PART)


class SharedRates:
    """Counts requests of callers, with the other hosts; safe to use from several threads.

    While the database is away this host counts alone: a limit is no reason to stop answering.
    """

    def __init__(
        self,
        writer: Writer,
        alone: RateWindows,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_callers: int = MAX_CALLERS,
    ) -> None:
        self._writer = writer
        self._alone = alone
        self._clock = clock
        self._lock = threading.Lock()
        self._max_callers = max_callers
        #: Whom a slice is asked for is kept alive by the asking.
        self._callers: Recent[str, _Caller] = Recent(max_callers)
        self._to_ask: deque[_Caller] = deque()
        self._is_leasing = False
        self._alone_until = 0.0
        self._swept_at = clock()

    def __len__(self) -> int:
        """Return the number of callers of which this host has something."""
        return len(self._callers)

    async def count(self, what: str, who: str, limit: int, cost: int = 1) -> float | None:
        """Count a cost against a caller's minute; return ``None``, or the seconds until there is room."""
        with self._lock:
            now = self._clock()
            if now < self._alone_until:
                return self._alone.take(what, who, limit, cost)
            caller = self._caller(what, who, limit)
            if not caller.waiting:
                if now < caller.ends_at and caller.left >= cost:
                    caller.left -= cost
                    return None
                if now < caller.refused_until and cost >= caller.refused_cost:
                    return max(caller.has_room_at - now, 0.001)
            waiting = _Waiting(cost)
            caller.waiting.append(waiting)
            if not caller.is_asking:
                caller.is_asking = True
                self._to_ask.append(caller)
            batch = self._next_batch()
        self._lease(batch)
        answer = asyncio.wrap_future(waiting.wait_s)
        done, _ = await asyncio.wait({answer}, timeout=_WAIT_S)
        if not done and waiting.wait_s.cancel():
            self._alone_until = self._clock() + _ALONE_S
            return self._alone.take(what, who, limit, cost)
        return await answer

    def _caller(self, what: str, who: str, limit: int) -> _Caller:
        caller = _Caller(what, who, limit)
        return self._callers.find_or_note(caller.key, caller)

    def _next_batch(self) -> list[tuple[_Caller, RateRequest]]:
        """Take the callers that need a slice; none while a transaction runs, whose end takes them."""
        batch: list[tuple[_Caller, RateRequest]] = []
        if self._is_leasing:
            return batch
        now = self._clock()
        while self._to_ask and len(batch) < _MOST_AT_ONCE:
            caller = self._to_ask.popleft()
            request = RateRequest(
                key=caller.key,
                limit=caller.limit,
                needed=sum(waiting.cost for waiting in caller.waiting),
                ahead=caller.ahead(now),
                unused=caller.left,
                unused_of=caller.number,
            )
            caller.left = 0
            caller.n_requested = len(caller.waiting)
            batch.append((caller, request))
        self._is_leasing = bool(batch)
        return batch

    def _lease(self, batch: list[tuple[_Caller, RateRequest]]) -> None:
        if not batch:
            return
        began = self._clock()
        is_sweeping = began - self._swept_at >= _SWEEP_S
        if is_sweeping:
            self._swept_at = began
        requests = [request for _, request in batch]
        most = self._max_callers if is_sweeping else None
        try:
            leased = self._writer.submit(functools.partial(_lease_and_sweep, requests, most))
        except StorageUnavailableError as error:
            leased = Future()
            leased.set_exception(error)
        leased.add_done_callback(functools.partial(self._got, batch, began))

    def _got(
        self, batch: list[tuple[_Caller, RateRequest]], began: float, leased: Future[list[Slice]]
    ) -> None:
        """Answer the waiting requests; runs on the writer's thread."""
        answers: list[tuple[_Waiting, float | None]] = []
        error = leased.exception()
        with self._lock:
            self._is_leasing = False
            if error is None:
                for (caller, _), got in zip(batch, leased.result(), strict=True):
                    answers += self._spend(caller, got, began)
            else:
                self._alone_until = self._clock() + _ALONE_S
                for caller in [*(caller for caller, _ in batch), *self._to_ask]:
                    answers += self._count_alone(caller)
                self._to_ask.clear()
            following = self._next_batch()
        if error is not None:
            _log.warning(
                "The hosts' shared counters cannot be used; this host counts alone: %s", error
            )
        for waiting, answer in answers:
            if waiting.wait_s.set_running_or_notify_cancel():
                waiting.wait_s.set_result(answer)
        self._lease(following)

    def _spend(
        self, caller: _Caller, got: Slice, began: float
    ) -> list[tuple[_Waiting, float | None]]:
        """Share a slice among the requests that wait for it, and keep the rest."""
        answers: list[tuple[_Waiting, float | None]] = []
        caller.units = caller.left = got.units
        caller.number = got.number
        caller.ends_at = began + SLICE_S
        now = self._clock()
        for _ in range(caller.n_requested):
            waiting = caller.waiting.popleft()
            if waiting.wait_s.cancelled():
                continue
            if waiting.cost <= caller.left:
                caller.left -= waiting.cost
                answers.append((waiting, None))
                continue
            wait_s = seconds_until_room(
                got.previous, got.rest_s, got.current, limit=caller.limit, cost=waiting.cost
            )
            caller.refused_cost = waiting.cost
            caller.refused_until = now + min(wait_s, _REFUSED_S)
            caller.has_room_at = now + wait_s
            answers.append((waiting, wait_s))
        while caller.waiting and caller.waiting[0].cost <= caller.left:
            waiting = caller.waiting.popleft()
            if not waiting.wait_s.cancelled():
                caller.left -= waiting.cost
                answers.append((waiting, None))
        caller.is_asking = bool(caller.waiting)
        if caller.is_asking:  # they came after the batch was taken
            self._to_ask.append(caller)
        return answers

    def _count_alone(self, caller: _Caller) -> list[tuple[_Waiting, float | None]]:
        answers = [
            (waiting, self._alone.take(caller.what, caller.who, caller.limit, waiting.cost))
            for waiting in caller.waiting
            if not waiting.wait_s.cancelled()
        ]
        caller.waiting.clear()
        caller.is_asking = False
        return answers


def _lease_and_sweep(
    demands: list[RateRequest], most: int | None, connection: Connection
) -> list[Slice]:
    if most is not None:
        sweep(connection, most)
    return lease(connection, demands)
