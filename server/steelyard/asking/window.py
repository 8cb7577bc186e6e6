"""Requests about rows that are under way: as many as a model takes at once, answers as they come."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Generic, TypeVar

from steelyard.errors import EngineUnavailableError, SteelyardError

#: Seconds for which a look waits for an answer.
LOOK_S = 0.1

Row = TypeVar("Row")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RowResult(Generic[Row, Result]):
    """How the request about a row ended; its times are of ``time.perf_counter``."""

    row: Row
    future: Future[Result]
    sent_at: float
    ended_at: float
    #: Whether the model's queue took it.
    is_sent: bool = True

    def result(self) -> Result:
        """Return the answer, or raise the row's error; ``TimeoutError`` where none came."""
        return self.future.result(0)


class RowWindow(Generic[Row, Result]):
    """Rows that a model is asked about, from the first request to the last answer.

    A row that cannot be sent has the reason as its answer. While others are under way, a row that
    finds no room waits for them. Work under way when a ``with`` ends is cancelled.

    Parameters
    ----------
    rows
        Read as there is room.
    submit
        Sends a row; raises ``EngineUnavailableError`` where there is no room for it.
    at_once
        Requests that are under way, at most.
    timeout_s
        Seconds without any answer after which the oldest request has failed.
    patience_s
        Seconds for which a row waits for room where no other is under way.
    on_end
        Called in any thread when a request ends, so that one wait can be for several windows.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        submit: Callable[[Row], Future[Result]],
        at_once: int,
        *,
        timeout_s: float = float("inf"),
        patience_s: float = 0.0,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._rows, self._submit, self._at_once = iter(rows), submit, at_once
        self._timeout_s, self._patience_s, self._on_end = timeout_s, patience_s, on_end
        self._next: deque[Row] = deque()
        self._under_way: dict[Future[Result], tuple[Row, float]] = {}
        self._ended: queue.SimpleQueue[tuple[Future[Result], float]] = queue.SimpleQueue()
        #: When the last answer came, or a row was sent after it; when the next row found no room.
        self._heard_at, self._refused_at = 0.0, float("inf")
        self._resume_at = 0.0

    def __enter__(self) -> RowWindow[Row, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        """Whether a row is under way or to be sent."""
        return bool(self._under_way) or self._has_next()

    def look(self, wait_s: float = LOOK_S) -> list[RowResult[Row, Result]]:
        """Send rows, and return the answers that came, waiting a moment for the first."""
        answers = self._fill()
        wait_s = 0.0 if answers else wait_s
        with suppress(queue.Empty):
            while True:
                future, at = self._ended.get(timeout=wait_s)
                wait_s = 0.0
                if future in self._under_way:
                    answers.append(self._end(future, at))
        now = perf_counter()
        if answers:
            self._heard_at = now
        elif self._under_way and now - self._heard_at > self._timeout_s:
            self._heard_at = now
            answers.append(self._end(next(iter(self._under_way)), now))
        return answers

    def again(self, row: Row) -> None:
        """Put a row before those that are to be sent."""
        self._next.appendleft(row)

    def take_back(self) -> list[Row]:
        """Return the rows that the model has not begun, which are asked no more."""
        rows = [*self._next, *self._rows]
        self._next.clear()
        for future, (row, _) in tuple(self._under_way.items()):
            if getattr(future, "started_at", None) is None and future.cancel():
                del self._under_way[future]
                rows.append(row)
        return rows

    def pause(self, seconds: float) -> None:
        """Send no row for a while."""
        self._resume_at = perf_counter() + seconds

    def close(self) -> None:
        """Cancel the requests under way."""
        under_way, self._under_way = self._under_way, {}
        for future in under_way:
            future.cancel()

    def _has_next(self) -> bool:
        if not self._next:
            self._next.extend(islice(self._rows, 1))
        return bool(self._next)

    def _fill(self) -> list[RowResult[Row, Result]]:
        """Send rows while there is room, and return those that cannot be sent."""
        unsent: list[RowResult[Row, Result]] = []
        if perf_counter() < self._resume_at:
            return unsent
        while not unsent and len(self._under_way) < self._at_once and self._has_next():
            now = perf_counter()
            try:
                future = self._submit(self._next[0])
            except SteelyardError as error:
                if isinstance(error, EngineUnavailableError) and self._waits_for_room(now):
                    break
                failed: Future[Result] = Future()
                failed.set_exception(error)
                unsent.append(RowResult(self._next.popleft(), failed, now, now, is_sent=False))
            else:
                if not self._under_way:
                    self._heard_at = now
                self._under_way[future] = self._next.popleft(), now
                future.add_done_callback(self._note_end)
            self._refused_at = float("inf")
        return unsent

    def _note_end(self, future: Future[Result]) -> None:
        self._ended.put((future, perf_counter()))
        self._on_end()

    def _waits_for_room(self, now: float) -> bool:
        self._refused_at = min(self._refused_at, now)
        return bool(self._under_way) or now - self._refused_at < self._patience_s

    def _end(self, future: Future[Result], at: float) -> RowResult[Row, Result]:
        row, sent_at = self._under_way.pop(future)
        return RowResult(row, future, sent_at, at)
