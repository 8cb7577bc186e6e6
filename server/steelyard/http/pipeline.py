"""The steps of every request before and after its handler, in this order.

Before: the request's id, whether the server is stopping, the caller and its scope, its share of
the minute, the idempotency key, the query, the body. Then the use case, or a handler that reads
the body its own way. After: the answer's JSON or the replay, headers, one line in the log, and the
figures. Refusals are exceptions; ``steelyard.http.errors`` answers them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from sanic import HTTPResponse, Request
from sanic.http import Http
from sanic.response import BaseHTTPResponse

from steelyard import tracing
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.errors import (
    EngineUnavailableError,
    InvalidRequestError,
    NotFoundError,
    SteelyardError,
)
from steelyard.http import access, logs
from steelyard.http.bodies import answer_response, discard_body, read_json_bytes
from steelyard.http.browsers import Browser, add_cookie
from steelyard.http.cors import allow_any_origin
from steelyard.http.metrics import Metrics
from steelyard.http.queries import read_query
from steelyard.http.routing import Access, Call, Route, Services, Use
from steelyard.ids import new_id
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Replay, Write, payload_sha256
from steelyard.storage import State
from steelyard.wire.json_values import decode_json
from steelyard.wire.payloads import INLINE_BYTES, refuse_nul
from steelyard.wire.queries import NoQuery

if TYPE_CHECKING:
    from steelyard.tracing.spans import RequestSpan

#: Seconds that a client has to send the rest of a body that is not wanted.
_LINGER_S = 5.0
#: Sanic's name for the method of a request whose head it could not read.
_UNREAD = "NONE"
#: What a browser says of the page that calls; programs send neither.
_PAGE_HEADERS = ("origin", "sec-fetch-site")
#: Characters of an idempotency key at most.
_MAX_KEY = 255


def pipe(route: Route) -> Callable[..., Coroutine[Any, Any, HTTPResponse | None]]:
    """Return the handler that Sanic calls for a route."""

    async def run(request: Request, **parts: str) -> HTTPResponse | None:
        request.ctx.route = route
        services: Services = request.app.ctx.services
        drain: Drain = request.app.ctx.drain
        span = request.ctx.span
        inside = nullcontext() if span is None else span.inside()
        with inside, drain.request(), ExitStack() as request.ctx.held:
            if drain.is_leaving and access.OPERATIONS in route.tags:
                raise stopping()
            if any(name in request.headers for name in _PAGE_HEADERS):
                request.app.ctx.origins.check_page(request, route)
            caller = request.ctx.caller = await access.admit(request, route, services)
            if parts and not all(part.isprintable() for part in parts.values()):
                # No id or name has such a character, and PostgreSQL takes no NUL in a text.
                raise NotFoundError(
                    "Nothing here has a name with control characters; send it without."
                )
            # Two headers are one value with a comma and a blank between them, which is refused.
            keys = request.headers.getall("idempotency-key", ()) if route.is_write else ()
            key = ", ".join(keys) if keys else None
            write = Write(
                caller, route.keyed_as, None if key is None else check_idempotency_key(key)
            )
            query = None
            if route.query is not None or request.query_string:
                query = read_query(request, route.query or NoQuery)
            if not route.is_write:
                await discard_body(request)
            call = Call(
                write=write,
                services=services,
                service=services.get,
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
        # One that writes reads its body itself.
        with nullcontext() if route.is_write else call.reading_stored():
            answer = await route.handler(request, call)
    else:
        assert route.use is not None  # noqa: S101  every route has one of the two
        call = await _read(request, route, call)
        with call.reading_stored():
            try:
                answer = await (
                    _answer_once(route.use, call) if route.is_repeatable else route.use(call)
                )
            except SteelyardError as error:
                if error.status < 500:
                    await _replay_meanwhile(call)
                raise
        if getattr(answer, "charge", None) is not None:  # else a quote, or a list: no decisions
            request.ctx.usage = getattr(answer, "usage", None)
    if answer is None or isinstance(answer, HTTPResponse):
        return answer
    sent = call.write.sent
    body = msgspec.json.encode(answer) if sent.body is None else sent.body
    return answer_response(body, route.status, operation_id=sent.operation_id)


async def _replay_meanwhile(call: Call) -> None:
    """Raise the answer that a key got meanwhile: its effect may be why an equal request is refused."""
    if call.write.key is not None:
        with suppress(SteelyardError):
            await KeyedWrites(call.service(State)).replay_known(call.write)


async def _answer_once(use: Use, call: Call) -> Struct | Raw:
    """Answer a call once for each key; those of signed-in users are each user's own."""
    write, session = call.write, call.caller.session
    if write.key is not None and session is not None:
        account_id = LOCAL_ACCOUNT if session.role is None else call.caller.account_id
        caller = replace(call.caller, account_id=account_id)
        write = replace(write, caller=caller, key=f"{session.user_id} {write.key}")
    return await KeyedWrites(call.service(State)).answer_once(write, lambda: use(call))


async def _read(request: Request, route: Route, call: Call) -> Call:
    """Add the fields of a request's body to its call."""
    if route.request is not None:
        payload = await read_json_bytes(request, may_be_empty=route.may_be_empty)
        if len(payload) <= INLINE_BYTES:
            return open_call(route, call, payload)
        return await asyncio.to_thread(open_call, route, call, payload)
    if route.is_write:
        await discard_body(request)
    return open_call(route, call)


def open_call(route: Route, call: Call, payload: bytes | None = None) -> Call:
    """Return a call with its body, and the body's digest if it has a key."""
    value = body = None
    if payload is not None:
        value = decode_json(payload)
        # Questions to a model may have any character.
        if route.request is not None and not (route.is_inference or route.is_bounded):
            refuse_nul(payload, value, route.request)
        if route.is_bounded:
            body = route.reader(value, most=call.services.settings.max_decisions)
        else:
            body = route.reader(value)
    write = call.write
    if write.key is not None:
        sent = body if isinstance(body, Struct) else value
        if call.path or call.query is not None:
            sent = {"path": dict(call.path), "query": call.query, "body": sent}
        is_short = payload is None or len(payload) <= INLINE_BYTES
        write = replace(write, digest=payload_sha256(sent, is_short=is_short))
    return replace(call, write=write, body=body)


def check_idempotency_key(value: str) -> str:
    """Return the value of an ``Idempotency-Key`` header, or refuse it."""
    if 1 <= len(value) <= _MAX_KEY and value.isascii() and value.isprintable() and " " not in value:
        return value
    raise InvalidRequestError.at(
        ("header", "Idempotency-Key"),
        "Idempotency-Key is not 1 to 255 visible ASCII characters without spaces; a UUID "
        "is a good key.",
        "invalid_key",
    )


async def begin(request: Request) -> HTTPResponse | None:
    """Note when a request began, name it, and refuse one that is meant for another server.

    A request that cannot be read as HTTP is counted against its address, like any call without a key.
    """
    request.ctx.started = perf_counter()
    request.ctx.span = None
    if tracing.recorder is not None:
        request.ctx.span = tracing.recorder.begin_request(request.method, request.headers)
    request.ctx.request_id = new_id("req")
    if request.method == _UNREAD:
        services: Services = request.app.ctx.services
        await services.limits.take_public(access.address_group(access.client_address(request)))
        return None
    origins: access.Origins = request.app.ctx.origins
    origins.check_host(request)
    return request.app.ctx.preflights.answer(request) if request.method == "OPTIONS" else None


async def finish(request: Request, response: BaseHTTPResponse) -> None:
    """Add the headers that every response has, and count and log the request."""
    headers = response.headers
    route: Route | None = getattr(request.ctx, "route", None)
    request_id: str = getattr(request.ctx, "request_id", None) or logs.get_request_id(request)
    headers.setdefault(logs.REQUEST_ID_HEADER, request_id)
    if f"{request.path}/".startswith(logs.TYPESAFE_PATHS):
        headers.setdefault(logs.TYPESAFE_REQUEST_ID_HEADER, request_id)
    for name, value in access.SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    if route is not None and route.access is Access.PUBLIC:
        allow_any_origin(headers)
    browser: Browser | None = getattr(request.ctx, "browser", None)
    if browser is not None and browser.keeps is not None:
        add_cookie(request, browser, headers)
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
    logs.log_access(request, response, seconds)
    span: RequestSpan | None = getattr(request.ctx, "span", None)
    if span is not None:
        pattern = None if route is None else route.path
        span.end(request.method, pattern, response.status, request_id)
    metrics: Metrics = request.app.ctx.metrics
    metrics.observe(request, response, seconds)


def _hang_up(request: Request) -> None:
    stream = request.stream  # gone once the rest was read
    if isinstance(stream, Http) and stream.request_body and request.transport is not None:
        request.transport.close()


class Drain:
    """The requests in flight of one application, and whether it is stopping; for its event loop alone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._cut_off: set[asyncio.Task[Any]] = set()
        self.is_leaving = False
        self.is_stopping = False

    def __len__(self) -> int:
        """Return the number of requests in flight."""
        return len(self._tasks)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count the running task as a request in flight."""
        if self.is_stopping:
            raise stopping()
        task = asyncio.current_task()
        if task is None:  # never so in a coroutine
            yield
            return
        self._tasks.add(task)
        self._is_empty.clear()
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._cut_off:
                raise
            task.uncancel()
            raise stopping() from None
        finally:
            self._cut_off.discard(task)
            self._tasks.discard(task)
            if not self._tasks:
                self._is_empty.set()

    async def finish(self, timeout_s: float) -> None:
        """Refuse new requests, wait for running ones, and cancel them after the time given."""
        self.is_stopping = True
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_empty.wait()
        except TimeoutError:
            self._cut_off = set(self._tasks)
            for task in self._cut_off:
                task.cancel()


def stopping() -> EngineUnavailableError:
    """Return the refusal of a server that is stopping."""
    return EngineUnavailableError(
        "The server is stopping; send it again in a moment.", retry_after_s=1.0
    )
