"""Hosted models with scorers that work, crash, hang or give garbage, for tests of services."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.batching import Batcher
from steelyard.scoring.hashing import HashingScorer, WordCounter
from steelyard.scoring.protocol import EngineStatus, ScoredDecision
from steelyard.serving.decide import DecideLimits, DecideService
from steelyard.serving.registry import HostedModel, ModelFacts, ModelHealth

Scored = list[list[ScoredDecision]]


class Behaving(HashingScorer):
    """A hashing scorer that runs ``behave`` on each call; ``None`` scores."""

    def __init__(self, name: str) -> None:
        super().__init__(name, name=name)
        self.n_calls = 0
        self.behave: Callable[[Scored], Scored] | None = None
        self.entered = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self.may_answer.set()

    def score(self, requests: Sequence[RenderedRequest]) -> Scored:
        self.n_calls += 1
        self.entered.release()
        assert self.may_answer.wait(timeout=60)
        scored = super().score(requests)
        return scored if self.behave is None else self.behave(scored)

    def hang(self) -> None:
        """Hold every call until ``may_answer`` is set."""
        self.may_answer.clear()


def crash(_: Scored) -> Scored:
    raise RuntimeError("the engine is made to fail")


def with_logits(make: Callable[[np.ndarray], np.ndarray]) -> Callable[[Scored], Scored]:
    """Replace the logits of every decision."""

    def behave(scored: Scored) -> Scored:
        return [
            [ScoredDecision(make(one.logits), one.marker_vectors) for one in request]
            for request in scored
        ]

    return behave


#: Ways in which an engine's answer cannot be used.
GARBAGE: dict[str, Callable[[Scored], Scored]] = {
    "no request": lambda scored: [],
    "one request more": lambda scored: [*scored, scored[0]],
    "one decision fewer": lambda scored: [request[:-1] for request in scored],
    "nan": with_logits(lambda logits: logits * np.nan),
    "infinite": with_logits(lambda logits: logits + np.inf),
    "a logit fewer": with_logits(lambda logits: logits[:-1]),
    "two rows": with_logits(lambda logits: np.stack([logits, logits])),
    "not scored at all": lambda scored: None,
    "no decisions": lambda scored: [None for _ in scored],
}


@contextmanager
def hosted(
    name: str,
    *,
    price_nano: int = 0,
    max_queue: int = 16,
    max_input_tokens: int = 65_536,
    clock: Callable[[], float] | None = None,
    engine_status: Callable[[], EngineStatus | None] | None = None,
) -> Iterator[tuple[HostedModel, Behaving]]:
    """Return a hosted model and its scorer."""
    scorer = Behaving(name)
    queue = Batcher(scorer, max_queue=max_queue)
    decide = DecideService(
        model_name=name,
        temperatures=TemperatureTable(),
        tokenizer=WordCounter(),
        limits=DecideLimits(max_input_tokens=max_input_tokens),
    )
    facts = ModelFacts(
        decide=decide,
        engine="hashing",
        description=f"The model {name}.",
        release_date=dt.date(2026, 5, 1),
        evaluation_key="0" * 64,
    )
    health = ModelHealth(engine_status, **({} if clock is None else {"clock": clock}))
    model = HostedModel(facts, queue, price_nano=price_nano, health=health)
    try:
        yield model, scorer
    finally:
        scorer.may_answer.set()
        queue.close()
