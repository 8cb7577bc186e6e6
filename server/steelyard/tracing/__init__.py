"""Traces for OpenTelemetry, off until ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set.

A span names the work, how long it ran and how it ended, and never a word of the request: attributes
are names of routes, models and errors, ids, counts and probabilities. While traces are off nothing
of OpenTelemetry is imported, and a span is one check.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from steelyard.settings import InvalidSettingError, read_variable
from steelyard.tracing.attributes import Attributes

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from steelyard.tracing.spans import Spans

#: The variable of OpenTelemetry's own that turns traces on; its exporter reads the others.
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
#: Seconds that the last spans have to leave when a process ends.
_FLUSH_S = 3.0

_OFF: AbstractContextManager[None] = nullcontext()
#: What opens the spans of this process; ``None`` while traces are off, which costs one look.
recorder: Spans | None = None


@contextmanager
def exporting() -> Iterator[None]:
    """Send this process's spans to the endpoint of the environment, if there is one.

    A thread of its own sends them from a bounded queue; where the collector is slow or away, the
    newest are dropped.

    Raise ``InvalidSettingError`` where an endpoint is set and the packages are missing.
    """
    if recorder is not None or not read_variable(ENDPOINT):
        yield
        return
    try:
        from steelyard.tracing.spans import open_exporter  # noqa: PLC0415  an extra
    except ImportError as error:
        raise InvalidSettingError(
            f"{ENDPOINT} is set, and traces need: pip install 'steelyard[traces]'."
        ) from error
    spans, close = open_exporter()
    try:
        with recording(spans):
            yield
    finally:
        # A collector that is away would hold the process for all of the exporter's retries.
        ending = threading.Thread(target=close, name="steelyard-traces", daemon=True)
        ending.start()
        ending.join(_FLUSH_S)


@contextmanager
def recording(spans: Spans) -> Iterator[None]:
    """Open every span of this process with ``spans``."""
    global recorder  # noqa: PLW0603  a process has one trace, as it has one log
    before, recorder = recorder, spans
    try:
        yield
    finally:
        recorder = before


def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    is_call: bool = False,
    origins: Sequence[Any] = (),
) -> AbstractContextManager[Span | None]:
    """Return the span of a block; it yields ``None`` while traces are off.

    It is a part of the span around it, or else of the first of its origins, and linked to the others;
    an origin is the value of ``origin`` where the work was requested.
    """
    if recorder is None:
        return _OFF
    return recorder.open(name, attributes, is_call=is_call, origins=origins)


def origin() -> Any:
    """Return the origin for a span of another thread; ``None`` without a trace."""
    return None if recorder is None else recorder.origin()


def outgoing_headers() -> dict[str, str]:
    """Return the headers that let the server that is asked go on with this trace."""
    return {} if recorder is None else recorder.outgoing_headers()
