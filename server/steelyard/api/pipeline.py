"""What every request goes through before and after its handler, in this order.

Before: the request's id, whether the server is stopping, the caller and its scope, its share of
the minute, the idempotency key. Then the handler, which reads the body. After: headers, one line in
the log, and the figures. Refusals are exceptions; ``steelyard.api.errors`` answers them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from sanic import HTTPResponse, Request
from sanic.http import Http
from sanic.response import BaseHTTPResponse

from steelyard.api.access import admit
from steelyard.api.bodies import discard_body
from steelyard.api.callers import route_of, services_of
from steelyard.api.cors import add_cors_headers
from steelyard.api.draining import Drain
from steelyard.api.logs import log_access
from steelyard.api.metrics import Metrics
from steelyard.api.routing import Route
from steelyard.api.tracing import get_request_id, request_id_headers
from steelyard.errors import NotFoundError
from steelyard.services.idempotency import check_idempotency_key

#: Seconds that a client has to send the rest of a body that is not wanted.
_LINGER_S = 5.0


def pipe(route: Route) -> Callable[..., Coroutine[Any, Any, HTTPResponse | None]]:
    """Give the handler that Sanic calls for a route."""

    async def run(request: Request, **parts: str) -> HTTPResponse | None:
        request.ctx.route = route
        services = services_of(request)
        drain: Drain = request.app.ctx.drain
        with drain.request():
            request.ctx.caller = await admit(request, route, services)
            if not all(part.isprintable() for part in parts.values()):
                # No id or name has such a character, and PostgreSQL takes no NUL in a text.
                raise NotFoundError("Nothing here has a name with control characters.")
            key = request.headers.get("idempotency-key") if route.is_write else None
            request.ctx.idempotency_key = check_idempotency_key(key)
            if not route.is_write:
                await discard_body(request)
            return await route.handler(request)

    return run


async def begin(request: Request) -> None:
    """Note when a request began, and name it."""
    request.ctx.started = perf_counter()
    get_request_id(request)


async def finish(request: Request, response: BaseHTTPResponse) -> None:
    """Add the headers that every response has, and count and log the request."""
    headers = response.headers
    for name, value in request_id_headers(request).items():
        headers.setdefault(name, value)
    add_cors_headers(route_of(request), headers)
    stream = request.stream
    if isinstance(stream, Http):
        if request.app.ctx.drain.is_stopping:
            stream.keep_alive = False
        if stream.request_body:
            # Refused before its body was read. Sanic reads past the rest, so that the client gets
            # the answer rather than a reset; it must not take for ever.
            asyncio.get_running_loop().call_later(_LINGER_S, _hang_up, request)
    started = getattr(request.ctx, "started", None)
    seconds = 0.0 if started is None else perf_counter() - started
    log_access(request, response, seconds)
    metrics: Metrics = request.app.ctx.metrics
    metrics.observe(request, response, seconds)


def _hang_up(request: Request) -> None:
    stream = request.stream  # gone once the rest was read
    if isinstance(stream, Http) and stream.request_body and request.transport is not None:
        request.transport.close()
