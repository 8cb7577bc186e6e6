"""Figures for Prometheus: one registry an application, or one directory for several processes.

Where ``PROMETHEUS_MULTIPROC_DIR`` was set before the process began, the client library keeps every
figure in a file there, and any process's answer adds up the files of all.
"""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Callable, Collection
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from sanic import Request
from sanic.response import BaseHTTPResponse

from steelyard.http.logs import UNMATCHED
from steelyard.http.routing import route_of

CONTENT_TYPE = CONTENT_TYPE_LATEST

#: Seconds: from what a refusal takes to the deadline.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90)
_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"}


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    decisions: int | None = None
    output_tokens: int | None = None


class _Answer(msgspec.Struct):
    """The part of a paid answer that is counted; what it does not name is skipped over."""

    usage: _Usage | None = None
    charge: Any = None


_decoder = msgspec.json.Decoder(_Answer)


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
        """Register what reads figures that change without a request, whenever they are looked at."""
        self._readers.append(read)

    def observe(self, request: Request, response: BaseHTTPResponse, seconds: float) -> None:
        """Count one answered request."""
        route = route_of(request)
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
        else:
            self._count_usage(getattr(response, "body", None) or b"")
        self._read()

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

    def _of_every_process(self) -> CollectorRegistry:
        registry = self.registry
        if values.ValueClass._multiprocess:  # how the library itself tells
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry

    def _count_usage(self, body: bytes) -> None:
        try:
            answer = _decoder.decode(body)
        except msgspec.MsgspecError:
            return
        if answer.usage is None or answer.charge is None:  # a quote, or the models: no decisions
            return
        n_decisions = answer.usage.decisions or answer.usage.output_tokens or 0
        self._decisions.inc(n_decisions)
        self._input_tokens.inc(answer.usage.input_tokens)
