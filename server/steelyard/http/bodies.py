"""Bodies in and out: how a request's is read within its bounds, and how an answer is encoded.

A body is read as it arrives, never past the route's bound and never for longer than the settings
allow. Reading starts after everything that the head alone can refuse.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any

import msgspec
from sanic import HTTPResponse, Request
from sanic import exceptions as sanic_errors
from sanic.http import Http

from steelyard.errors import (
    ImagesNotSupportedError,
    PayloadTooLargeError,
    RequestTimeoutError,
    UnsupportedMediaTypeError,
)
from steelyard.http.compression import (
    BodyTooLargeError,
    content_encoding,
    decompress,
    decompressed_start,
)
from steelyard.http.routing import Route, services_of
from steelyard.http.transfers import FREE_BYTES
from steelyard.settings import Settings
from steelyard.storage import State

_log = logging.getLogger(__name__)

JSON = "application/json"

#: How many times as long as another body an upload may take to arrive.
UPLOAD_TIMES = 4
#: Bodies longer than this are decompressed on a thread.
_INLINE_BYTES = 16 * 1024
#: How many times as much memory as bytes decoded rows take.
_DECODED_TIMES = 4
#: Bytes of memory that one stream of rows takes.
STREAM_BYTES = 4 * 1024 * 1024
#: Seconds in which the start of a body over the bound may arrive, where it may show an image.
_START_S = 1.0
#: An image in JSON: as ``POST /v1/decide`` has it, as OpenAI has it, or as a data URL.
_IMAGE = re.compile(
    rb'"images"\s*:\s*\[\s*\{\s*"(?:id|media_type|data)"|"input_image"|(?<!\\)"data:image\\?/'
)


async def read_json_bytes(request: Request, *, may_be_empty: bool = False) -> bytes:
    """Return the bytes of a JSON body, decompressed."""
    if not may_be_empty:
        media_type_of(request, JSON)
        return await read_bytes(request)
    body = await read_bytes(request)
    if not body.strip():
        return b"{}"
    media_type_of(request, JSON)
    return body


async def read_bytes(request: Request) -> bytes:
    """Return the bytes of a body of any type, decompressed."""
    header = request.headers.get("content-encoding")
    coding = "identity" if header is None else content_encoding(header)
    bound = body_bound(request)
    expected = _expected_bytes(request, bound, coding)
    if _is_upload(request):
        expected *= _DECODED_TIMES
    parts: list[bytes] = []
    try:
        await _hand_on(request, bound, parts.append, expected)
        body = b"".join(parts)
        if coding == "identity":
            return body
        work = partial(decompress, body, coding, bound)
        return await asyncio.to_thread(work) if len(body) > _INLINE_BYTES else work()
    except (PayloadTooLargeError, BodyTooLargeError):
        if _refuses_images(request):
            start = decompressed_start(b"".join(parts), coding, bound)
            if _IMAGE.search(start):
                raise ImagesNotSupportedError(
                    f"The body is longer than {bound} bytes and has an image, and the models here "
                    "read text alone; describe images in the context and leave them out."
                ) from None
        raise _too_large(bound) from None


async def read_stream(request: Request, take: Callable[[bytes], None]) -> None:
    """Hand on the bytes of an upload as they arrive, decompressed.

    A compressed one is handed on at once when it is whole. An error of ``take`` ends the reading.
    """
    if content_encoding(request.headers.get("content-encoding")) == "identity":
        bound = body_bound(request)
        await _hand_on(request, bound, take, _expected_bytes(request, bound))
    else:
        take(await read_bytes(request))


async def discard_body(request: Request) -> None:
    """Read past a body that the route has no use for, within the same bounds."""
    await _hand_on(request, body_bound(request), lambda _: None, 0)


def body_bound(request: Request) -> int:
    """Return the most bytes that the body of a request may have, compressed or not."""
    settings: Settings = request.app.ctx.services.settings
    return settings.upload_bytes if _is_upload(request) else settings.body_bytes


def _is_upload(request: Request) -> bool:
    route: Route | None = getattr(request.ctx, "route", None)
    return route is not None and route.max_body == "upload"


def _refuses_images(request: Request) -> bool:
    route: Route | None = getattr(request.ctx, "route", None)
    return route is not None and ImagesNotSupportedError in route.errors


def _expected_bytes(request: Request, bound: int, coding: str = "identity") -> int:
    """Return the bytes that a body may take in memory."""
    stream = request.stream
    if not isinstance(stream, Http):
        return 0
    announced = stream.request_bytes or 0
    is_unknown = str(stream.request_body) == "chunked" or coding != "identity"
    return bound if is_unknown and announced <= bound else announced


async def _hand_on(
    request: Request, bound: int, take: Callable[[bytes], None], expected: int
) -> None:
    """Read a body; a long one once there is room for the bytes that it is expected to take."""
    stream = request.stream
    if not isinstance(stream, Http) or not stream.request_body:
        return
    if (stream.request_bytes or 0) > bound:  # the head says so already
        if _refuses_images(request):
            await request.app.ctx.received.hold(request, bound)
            await _take_start(stream, bound, take)
        raise _too_large(bound)
    stream.request_max_size = bound  # chunks that announce more are refused before they are read
    timeout_s: float = request.app.ctx.services.settings.body_timeout_s
    if _is_upload(request):
        timeout_s *= UPLOAD_TIMES
    if expected > FREE_BYTES:
        await request.app.ctx.received.hold(request, expected)
    try:
        async with _patience(stream, timeout_s):
            while stream.request_body:
                part = await stream.read()
                if part:
                    take(part)
    except TimeoutError:
        stream.request_body = None  # or Sanic would go on waiting for it after the answer
        stream.keep_alive = False
        raise RequestTimeoutError(
            f"The body did not arrive within {timeout_s:g} s; send it again."
        ) from None
    except sanic_errors.PayloadTooLarge:
        # Sanic reads past some of the rest after the answer, or a client that still sends would miss it.
        stream.request_max_size = request.app.config.REQUEST_MAX_SIZE
        raise _too_large(bound) from None


async def _take_start(stream: Http, bound: int, take: Callable[[bytes], None]) -> None:
    """Read the start of a body that is too long, up to the bound and for a moment."""
    stream.request_max_size = float("inf")
    n_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_START_S):
            while n_bytes < bound and (part := await stream.read()):
                take(part)
                n_bytes += len(part)


def _patience(stream: Http, timeout_s: float) -> AbstractAsyncContextManager[object]:
    """Return the bound on waiting for a body; a timer costs more than reading one that is there."""
    is_chunked = str(stream.request_body) == "chunked"
    is_awaited = (stream.request_bytes_left or 0) > len(stream.recv_buffer)
    if is_chunked or is_awaited or stream.expecting_continue:
        return asyncio.timeout(timeout_s)
    return nullcontext()


def media_type_of(request: Request, *allowed: str) -> str:
    """Return the media type of a body."""
    header = request.headers.get("content-type", "")
    media_type, *parameters = (part.strip().lower() for part in header.split(";"))
    charsets = [value for value in parameters if value.startswith("charset=")]
    is_utf8 = all(value[8:].strip('"') in {"utf-8", "utf8"} for value in charsets)
    if media_type not in allowed or not is_utf8:
        given = f"is {header!r}" if header else "is missing"
        raise UnsupportedMediaTypeError(
            f"The Content-Type {given}; send the body as {' or '.join(allowed)} in UTF-8."
        )
    return media_type


def _too_large(bound: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(f"The body is longer than {bound} bytes; send a shorter one.")


class ApiResponse(HTTPResponse):
    """A response with no header that says nothing."""

    @property
    def processed_headers(self) -> Iterator[tuple[bytes, bytes]]:
        """Return the headers to send; Sanic adds an empty ``alt-svc``, which is left out."""
        return ((name, value) for name, value in super().processed_headers if value)


def json_response(value: Any, status: int = 200) -> HTTPResponse:
    """Encode an answer as compact JSON."""
    return ApiResponse(msgspec.json.encode(value), status=status, content_type=JSON)


def answer_response(
    body: bytes, status: int = 200, *, operation_id: str | None = None, is_replay: bool = False
) -> HTTPResponse:
    """Send an answer that is encoded already, its headers saying whether it is a replay."""
    response = ApiResponse(body, status=status, content_type=JSON)
    if operation_id is not None:
        response.headers["X-Operation-ID"] = operation_id
    if is_replay:
        response.headers["Idempotency-Replayed"] = "true"
    return response


async def send_stream(request: Request, pieces: Iterator[bytes], media_type: str) -> None:
    """Send an answer piece by piece; each is made on a thread.

    A failure before the first piece is answered as usual. After it, the connection is closed before the
    end, which every client takes for a failure.
    """
    await request.app.ctx.sent.hold(request, STREAM_BYTES)
    piece_s = services_of(request).settings.body_timeout_s
    piece = await asyncio.to_thread(next, pieces, None)
    # respond() returns its argument; middleware may not replace it here.
    response: ApiResponse = await request.respond(ApiResponse(content_type=media_type))
    if isinstance(request.stream, Http) and request.stream.head_only:
        await response.send(b"")
        # Sanic would await this, which for a HEAD is no coroutine.
        request.stream.head_response_ignored(b"", end_stream=True)
        return
    try:
        while piece is not None:
            async with asyncio.timeout(piece_s):
                await response.send(piece)
            piece = await asyncio.to_thread(next, pieces, None)
        await response.send(end_stream=True)
    except TimeoutError:
        _log.info("A reader took no piece within %g s and was cut off.", piece_s)
        transport: Any = request.transport
        if transport is not None:
            transport.abort()
    except Exception as error:  # noqa: BLE001  the status is sent, so no error can be
        if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
            services_of(request).get(State).explain(error)
        _log.error("A stream broke off: %s", error, exc_info=error)
        if request.transport is not None:
            request.transport.close()


def text_response(text: str | bytes, media_type: str) -> HTTPResponse:
    """Send a text of another type than JSON."""
    return ApiResponse(text, content_type=media_type)
