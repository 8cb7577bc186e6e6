"""Figures for Prometheus: one registry an application, or one directory for several processes.

Where ``PROMETHEUS_MULTIPROC_DIR`` was set before the process began, the client library keeps every
figure in a file there, and any process's answer adds up the files of all.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Counts
from collections.abc import Callable, Collection

from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from sanic import Request
from sanic.response import BaseHTTPResponse

from steelyard.http.logs import UNMATCHED
from steelyard.http.routing import Route

CONTENT_TYPE = CONTENT_TYPE_LATEST

#: Seconds: from a refusal's time to the deadline.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90)
#: Seconds between two looks of a process at figures that another one shows.
_REFRESH_S = 1.0
_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"}


class Metrics:
    """The figures of one application."""

    def __init__(self) -> None:
        self._readers: list[Callable[[], None]] = []
        self.started_at = time.time()
        registry = self.registry = CollectorRegistry()
        self._requests = Counter(
            "steelyard_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "steelyard_request_seconds",
            "Seconds from a request's head to its answer.",
            ["route"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._errors = Counter(
            "steelyard_errors", "Refusals and failures by code.", ["code"], registry=registry
        )
        self._replays = Counter(
            "steelyard_replays", "Answers repeated for an idempotency key.", registry=registry
        )
        self._decisions = Counter("steelyard_decisions", "Decisions answered.", registry=registry)
        self._input_tokens = Counter(
            "steelyard_input_tokens", "Input tokens of answered requests.", registry=registry
        )

    def watch(self, read: Callable[[], None]) -> None:
        """Register a reader of gauges that change without a request, called at each scrape.

        Where several processes share the figures, each reads its own once a second too: a process that
        is scraped reports the others' last written ones.
        """
        self._readers.append(read)

    def observe(self, request: Request, response: BaseHTTPResponse, seconds: float) -> None:
        """Count one answered request."""
        route: Route | None = getattr(request.ctx, "route", None)
        pattern = UNMATCHED if route is None else route.path
        method = request.method if request.method in _METHODS else "other"
        self._requests.labels(method, pattern, str(response.status)).inc()
        self._seconds.labels(pattern).observe(seconds)
        code = getattr(request.ctx, "error_code", None)
        if code is not None:
            self._errors.labels(code).inc()
        if route is None or not route.is_inference or not route.is_write or response.status != 200:
            return
        if "Idempotency-Replayed" in response.headers:
            self._replays.inc()
        elif (usage := getattr(request.ctx, "usage", None)) is not None:
            n_decisions = getattr(usage, "decisions", 0) or getattr(usage, "output_tokens", 0)
            self._decisions.inc(n_decisions)
            self._input_tokens.inc(usage.input_tokens)

    async def keep_current(self) -> None:
        """Refresh such gauges regularly, where other processes show them."""
        while self._are_shared:
            self._read()
            await asyncio.sleep(_REFRESH_S)

    def _read(self) -> None:
        for read in self._readers:
            read()

    def expose(self) -> bytes:
        """Return the figures as Prometheus reads them, of every process that shares them."""
        self._read()
        return generate_latest(self._of_every_process())

    def count_statuses(self, routes: Collection[str]) -> dict[int, int]:
        """Count the answers to some routes by status, of every process that shares the figures."""
        counts: Counts[int] = Counts()
        for family in self._of_every_process().collect():
            if family.name != "steelyard_requests":
                continue
            for sample in family.samples:
                if sample.name.endswith("_total") and sample.labels["route"] in routes:
                    counts[int(sample.labels["status"])] += int(sample.value)
        return dict(counts)

    @property
    def _are_shared(self) -> bool:
        return bool(values.ValueClass._multiprocess)  # how the library itself tells

    def _of_every_process(self) -> CollectorRegistry:
        registry = self.registry
        if self._are_shared:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry
