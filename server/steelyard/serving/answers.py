"""One request from its payload to its answer: prepare, score, finish.

The API and in-process callers share this one path. Not here: HTTP (``steelyard.http``), which
scorer runs (``steelyard.app.deployment``).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Mapping
from time import perf_counter
from typing import Any, Protocol

import msgspec

from steelyard.decisions.rendering import RenderedRequest
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import DeadlineExceededError, SteelyardError
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.decide import DecideService, Prepared


class Queue(Protocol):
    """Where rendered requests wait for the engine."""

    def submit(
        self, request: RenderedRequest, deadline_s: float | None = None
    ) -> concurrent.futures.Future[list[ScoredDecision]]:
        """Queue a request; the future gives one scored decision per decision.

        The future may say when the engine took the request: an attribute ``started_at``, in
        seconds of ``time.perf_counter``. Without it the whole wait counts as scoring.
        """
        ...


class AnswerService:
    """Answers requests with one scorer.

    Notes
    -----
    Safe to use from several threads and event loops.
    """

    def __init__(self, decide: DecideService, queue: Queue, *, deadline_s: float) -> None:
        self._decide = decide
        self._queue = queue
        self._deadline_s = deadline_s

    def answer(self, payload: bytes | Mapping[str, Any]) -> DecideResponse:
        """Answer a request, waiting for the engine."""
        prepared = self._decide.prepare(payload)
        submitted = perf_counter()
        future = self._queue.submit(prepared.rendered, self._deadline_s)
        try:
            scored = future.result(timeout=self._deadline_s)
        except SteelyardError:  # one of them is a TimeoutError too
            raise
        except TimeoutError:
            raise _late(future, self._deadline_s) from None
        return self._finish(prepared, scored, submitted, getattr(future, "started_at", submitted))

    def answer_dict(self, payload: bytes | Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request as plain dictionaries and lists."""
        answer: dict[str, Any] = msgspec.to_builtins(self.answer(payload))
        return answer

    def _finish(
        self, prepared: Prepared, scored: list[ScoredDecision], submitted: float, started: float
    ) -> DecideResponse:
        return self._decide.finish(
            prepared,
            scored,
            queue_ms=(started - submitted) * 1000,
            score_ms=(perf_counter() - started) * 1000,
        )


async def wait_for_scores(
    future: concurrent.futures.Future[list[ScoredDecision]], wait_s: float
) -> list[ScoredDecision]:
    """Wait for what a queue was given, without blocking the event loop."""
    try:
        async with asyncio.timeout(wait_s):
            return await asyncio.wrap_future(future)
    except SteelyardError:  # one of them is a TimeoutError too
        raise
    except TimeoutError:
        raise _late(future, wait_s) from None


def _late(
    future: concurrent.futures.Future[list[ScoredDecision]], wait_s: float
) -> DeadlineExceededError:
    future.cancel()
    return DeadlineExceededError(
        f"No answer within {wait_s:.3g} s; nothing was charged. Try again, or ask less in one request."
    )
