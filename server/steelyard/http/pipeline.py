"""What every request goes through before and after its handler, in this order.

Before: the request's id, whether the server is stopping, the caller and its scope, its share of
the minute, the idempotency key, the query, the body. Then the use case, or a handler that reads
the body its own way. After: the answer's JSON or the replay, headers, one line in the log, and the
figures. Refusals are exceptions; ``steelyard.http.errors`` answers them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from sanic import HTTPResponse, Request
from sanic.http import Http
from sanic.response import BaseHTTPResponse

from steelyard import tracing
from steelyard.errors import NotFoundError
from steelyard.http.access import OPERATIONS, address_group, admit
from steelyard.http.bodies import answer_response, discard_body, read_json_bytes
from steelyard.http.browsers import add_cookie
from steelyard.http.cors import add_cors_headers
from steelyard.http.draining import Drain, stopping
from steelyard.http.logs import get_request_id, log_access, request_id_headers
from steelyard.http.metrics import Metrics
from steelyard.http.origins import SECURITY_HEADERS, Origins
from steelyard.http.proxies import client_address
from steelyard.http.queries import read_query
from steelyard.http.routing import Call, Route, route_of, services_of
from steelyard.operations.write import Replay, Write, check_idempotency_key, payload_sha256
from steelyard.wire.json_values import decode_json
from steelyard.wire.payloads import read_body
from steelyard.wire.queries import NoQuery

if TYPE_CHECKING:
    from steelyard.tracing.spans import RequestSpan

#: Seconds that a client has to send the rest of a body that is not wanted.
_LINGER_S = 5.0
#: Sanic's name for the method of a request whose head it could not read.
_UNREAD = "NONE"


def pipe(route: Route) -> Callable[..., Coroutine[Any, Any, HTTPResponse | None]]:
    """Return the handler that Sanic calls for a route."""

    async def run(request: Request, **parts: str) -> HTTPResponse | None:
        request.ctx.route = route
        services = services_of(request)
        drain: Drain = request.app.ctx.drain
        inside = tracing.inside(request.ctx.span)
        with inside, drain.request(), ExitStack() as request.ctx.held:
            if drain.is_leaving and OPERATIONS in route.tags:
                raise stopping()
            request.app.ctx.origins.check_page(request, route)
            caller = request.ctx.caller = await admit(request, route, services)
            if not all(part.isprintable() for part in parts.values()):
                # No id or name has such a character, and PostgreSQL takes no NUL in a text.
                raise NotFoundError("Nothing here has a name with control characters.")
            key = request.headers.get("idempotency-key") if route.is_write else None
            write = Write(caller, route.keyed_as, check_idempotency_key(key))
            query = read_query(request, route.query or NoQuery)
            if not route.is_write:
                await discard_body(request)
            call = Call(
                write=write,
                services=services,
                path=request.match_info,
                query=query if route.query else None,
                browser=getattr(request.ctx, "browser", None),
            )
            if route.check is not None:
                route.check(call)
            try:
                return await _answer(request, route, call)
            except Replay as replay:
                return answer_response(
                    replay.body, operation_id=replay.operation_id, is_replay=True
                )

    return run


async def _answer(request: Request, route: Route, call: Call) -> HTTPResponse | None:
    answer: Struct | Raw | HTTPResponse | None
    if route.handler is not None:
        answer = await route.handler(request, call)
    else:
        assert route.use is not None  # noqa: S101  every route has one of the two
        call = await _read(request, route, call)
        answer = await route.use(call)
    if answer is None or isinstance(answer, HTTPResponse):
        return answer
    sent = call.write.sent
    body = msgspec.json.encode(answer) if sent.body is None else sent.body
    return answer_response(body, route.status, operation_id=sent.operation_id)


async def _read(request: Request, route: Route, call: Call) -> Call:
    """Add what a request's body says to its call."""
    if route.request is not None:
        payload = await read_json_bytes(request, may_be_empty=route.may_be_empty)
        return await read_body(partial(open_call, route, call), payload)
    if route.is_write:
        await discard_body(request)
    return open_call(route, call)


def open_call(route: Route, call: Call, payload: bytes | None = None) -> Call:
    """Return a call with its body, and with the digest of what was sent if it has a key."""
    value = body = None
    if payload is not None:
        value = decode_json(payload)
        body = route.read_value(value)
    write = call.write
    if write.key is not None:
        sent = body if isinstance(body, Struct) else value
        if call.path or call.query is not None:
            sent = {"path": dict(call.path), "query": call.query, "body": sent}
        write = replace(write, digest=payload_sha256(sent))
    return replace(call, write=write, body=body)


async def begin(request: Request) -> None:
    """Note when a request began, name it, and refuse one that is meant for another server.

    What cannot be read as HTTP is counted against its address, like any call without a key.
    """
    request.ctx.started = perf_counter()
    request.ctx.span = tracing.begin_request(request.method, request.headers)
    get_request_id(request)
    if request.method == _UNREAD:
        await services_of(request).limits.take_public(address_group(client_address(request)))
    else:
        origins: Origins = request.app.ctx.origins
        origins.check_host(request)


async def finish(request: Request, response: BaseHTTPResponse) -> None:
    """Add the headers that every response has, and count and log the request."""
    headers = response.headers
    for name, value in request_id_headers(request).items():
        headers.setdefault(name, value)
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    add_cors_headers(route_of(request), headers)
    add_cookie(request, headers)
    stream = request.stream
    if isinstance(stream, Http):
        if request.app.ctx.drain.is_leaving:
            stream.keep_alive = False
        if stream.request_body:
            # Refused before its body was read. Sanic reads past the rest, so that the client gets
            # the answer rather than a reset; it must not take for ever.
            asyncio.get_running_loop().call_later(_LINGER_S, _hang_up, request)
    started = getattr(request.ctx, "started", None)
    seconds = 0.0 if started is None else perf_counter() - started
    log_access(request, response, seconds)
    span: RequestSpan | None = getattr(request.ctx, "span", None)
    if span is not None:
        route = route_of(request)
        pattern = None if route is None else route.path
        span.end(request.method, pattern, response.status, get_request_id(request))
    metrics: Metrics = request.app.ctx.metrics
    metrics.observe(request, response, seconds)


def _hang_up(request: Request) -> None:
    stream = request.stream  # gone once the rest was read
    if isinstance(stream, Http) and stream.request_body and request.transport is not None:
        request.transport.close()
