"""Spans by the SDK of OpenTelemetry; imported only where traces are on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from steelyard.settings import read_variable
from steelyard.tracing.attributes import Attributes
from steelyard.version import __version__

#: Headers that carry a trace from one server to the next (W3C Trace Context).
_HEADERS = ("traceparent", "tracestate")
_FAULTS = 500

_propagator = TraceContextTextMapPropagator()


def open_exporter() -> tuple[Spans, Callable[[], None]]:
    """Return spans sent to the endpoint of the environment, and the function that ends them."""
    named = {
        "service.name": read_variable("OTEL_SERVICE_NAME") or "steelyard",
        "service.version": __version__,
    }
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider.get_tracer("steelyard", __version__)), provider.shutdown


class Spans:
    """Opens the spans of a process with a tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def open(
        self,
        name: str,
        attributes: Attributes | None,
        *,
        is_call: bool,
        origins: Sequence[SpanContext | None],
    ) -> Iterator[Span]:
        """Open the span of a block; see ``steelyard.tracing.span``."""
        known = [origin for origin in origins if origin is not None]
        around = trace.set_span_in_context(trace.NonRecordingSpan(known[0])) if known else None
        with self._tracer.start_as_current_span(
            name,
            context=around,
            kind=SpanKind.CLIENT if is_call else SpanKind.INTERNAL,
            attributes=attributes,
            links=[Link(origin) for origin in known[1:]],
            # A message may quote what was asked.
            record_exception=False,
            set_status_on_exception=False,
        ) as opened:
            try:
                yield opened
            except BaseException as error:
                _fail(opened, str(getattr(error, "code", type(error).__name__)))
                raise

    def origin(self) -> SpanContext | None:
        """Return the span that this is called in; ``None`` outside of any."""
        span_context = trace.get_current_span().get_span_context()
        return span_context if span_context.is_valid else None

    def outgoing_headers(self) -> dict[str, str]:
        """Return the headers that carry the trace on."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier

    def begin_request(self, method: str, headers: Mapping[str, str]) -> RequestSpan:
        """Return the span of a request, a part of the caller's trace if it sent one."""
        carrier = {name: headers[name] for name in _HEADERS if name in headers}
        return RequestSpan(
            self._tracer.start_span(
                method,
                context=_propagator.extract(carrier),
                kind=SpanKind.SERVER,
                attributes={"http.request.method": method},
            )
        )


class RequestSpan:
    """The span of one HTTP request, from its first middleware to its last."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def inside(self) -> AbstractContextManager[Any]:
        """Return a block whose spans are parts of the request."""
        return trace.use_span(self._span, record_exception=False, set_status_on_exception=False)

    def end(self, method: str, route: str | None, status: int, request_id: str) -> None:
        """Write how the request ended; a route is its pattern, not its path."""
        if route is not None:
            self._span.update_name(f"{method} {route}")
            self._span.set_attribute("http.route", route)
        self._span.set_attribute("http.response.status_code", status)
        self._span.set_attribute("steelyard.request_id", request_id)
        if status >= _FAULTS:
            _fail(self._span, str(status))
        self._span.end()


def _fail(failed: Span, kind: str) -> None:
    failed.set_status(Status(StatusCode.ERROR))
    failed.set_attribute("error.type", kind)
