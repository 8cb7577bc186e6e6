"""Metrics of engines: where passes run, how they end, and caches of questions."""

from __future__ import annotations

from collections import Counter as Counts
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from steelyard.scoring.lower import CONTEXT_STATES, QUESTION_STATES, KeptStates

if TYPE_CHECKING:
    from steelyard.scoring.protocol import EngineStatus
    from steelyard.serving.registry import ModelRegistry

_PLACES: Final = ("triton", "in-process", "none")


class ScorerFigures:
    """Engines and their caches, for Prometheus; of places, only those of remote engines."""

    def __init__(self, models: ModelRegistry, registry: CollectorRegistry) -> None:
        self._models = models
        self._waiting = Gauge(
            "steelyard_queue_waiting",
            "Requests that wait for an engine.",
            ["model"],
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._engines = Gauge(
            "steelyard_scorer_engines",
            "Engines that are to be in a server, by where their passes go now.",
            ["place"],
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._passes = Counter(
            "steelyard_scorer_passes",
            "Passes of those engines, by where they ran.",
            ["place"],
            registry=registry,
        )
        self._faults = Counter(
            "steelyard_scorer_faults",
            "Passes that the server failed, by the error's code.",
            ["code"],
            registry=registry,
        )
        self._changes = Counter(
            "steelyard_scorer_changes",
            "Times that passes of an engine began to go elsewhere.",
            registry=registry,
        )
        self._counted: dict[str, EngineStatus] = {}
        self._caches = (
            _CacheFigures(registry, "question", "Questions and outcomes", QUESTION_STATES),
            _CacheFigures(registry, "context", "Contexts and sentences", CONTEXT_STATES),
        )

    def read(self) -> None:
        """Update the engine in use, and add the counts since the last call."""
        for model in self._models.hosted:
            self._waiting.labels(model.name).set(model.queue.n_waiting)
        for cache in self._caches:
            cache.read()
        statuses = self._models.engine_statuses()
        if not statuses and not self._counted:
            return
        places = Counts(status.place for status in statuses.values() if status.remote is not None)
        for place in _PLACES:
            self._engines.labels(place).set(places[place])
        for name, status in statuses.items():
            before = self._counted.get(name)
            # A new engine counts from zero again.
            if before is not None and not _has_grown(before, status):
                before = None
            for place, n in status.passes.items():
                self._passes.labels(place).inc(n - (before.passes.get(place, 0) if before else 0))
            for code, n in status.faults.items():
                self._faults.labels(code).inc(n - (before.faults.get(code, 0) if before else 0))
            self._changes.inc(status.n_changes - (before.n_changes if before else 0))
        self._counted = dict(statuses)


class _CacheFigures:
    """The size of a cache of texts, and its hits."""

    def __init__(
        self, registry: CollectorRegistry, name: str, what: str, states: KeptStates
    ) -> None:
        self._lookups = Counter(
            f"steelyard_{name}_cache_lookups",
            f"{what} that were looked up, by whether they were kept.",
            ["result"],
            registry=registry,
        )
        self._evictions = Counter(
            f"steelyard_{name}_cache_evictions",
            f"{what} that left to make room.",
            registry=registry,
        )
        self._bytes = Gauge(
            f"steelyard_{name}_cache_bytes",
            f"Bytes that kept {what.lower()} take.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._states, self._before = states, states.figures()

    def read(self) -> None:
        before, now = self._before, self._states.figures()
        self._lookups.labels("hit").inc(now.hits - before.hits)
        self._lookups.labels("miss").inc(now.misses - before.misses)
        self._evictions.inc(now.evictions - before.evictions)
        self._bytes.set(now.n_bytes)
        self._before = now


def _has_grown(before: EngineStatus, now: EngineStatus) -> bool:
    return (
        before.n_changes <= now.n_changes
        and all(old <= now.passes.get(place, 0) for place, old in before.passes.items())
        and all(old <= now.faults.get(code, 0) for code, old in before.faults.items())
    )
