"""Bodies in and out: how a request's is read within its bounds, and how an answer is encoded.

A body is read as it arrives, never past the route's bound and never for longer than the settings
allow. Reading starts when the handler asks, after everything that the head alone can refuse.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from sanic import HTTPResponse, Request
from sanic import exceptions as sanic_errors
from sanic.http import Http

from steelyard.api.callers import route_of, services_of
from steelyard.api.compression import BodyTooLargeError, content_encoding, decompress
from steelyard.errors import (
    PayloadTooLargeError,
    RequestTimeoutError,
    UnsupportedMediaTypeError,
)
from steelyard.services.reply import Reply

_log = logging.getLogger(__name__)

JSON = "application/json"

#: How many times as long as another body an upload may take to arrive.
UPLOAD_TIMES = 4
#: Bodies longer than this are decompressed on a thread.
_INLINE_BYTES = 16 * 1024


async def read_json_bytes(request: Request) -> bytes:
    """Give the bytes of a JSON body, decompressed.

    Raises
    ------
    steelyard.errors.UnsupportedMediaTypeError
        When ``Content-Type`` is not JSON in UTF-8.
    steelyard.errors.UnsupportedEncodingError
        When ``Content-Encoding`` is neither gzip nor zstd.
    steelyard.errors.PayloadTooLargeError
        When the body is over the route's bound, as sent or decompressed.
    steelyard.errors.RequestTimeoutError
        When it does not arrive in time.
    steelyard.errors.InvalidRequestError
        When what was compressed is cut off or damaged.
    """
    media_type_of(request, JSON)
    return await read_bytes(request)


async def read_bytes(request: Request) -> bytes:
    """Give the bytes of a body of any type, decompressed; raises what ``read_json_bytes`` does."""
    coding = content_encoding(request.headers.get("content-encoding"))
    bound = body_bound(request)
    body = await _receive(request, bound)
    if coding == "identity":
        return body
    work = partial(decompress, body, coding, bound)
    try:
        return await asyncio.to_thread(work) if len(body) > _INLINE_BYTES else work()
    except BodyTooLargeError:
        raise _too_large(bound) from None


async def read_stream(request: Request, take: Callable[[bytes], None]) -> None:
    """Hand on the bytes of an upload as they arrive, decompressed; raises as ``read_bytes`` does.

    A compressed one is handed on at once when it is whole. What ``take`` raises ends the reading.
    """
    if content_encoding(request.headers.get("content-encoding")) == "identity":
        await _hand_on(request, body_bound(request), take)
    else:
        take(await read_bytes(request))


async def discard_body(request: Request) -> None:
    """Read past a body that the route has no use for, within the same bounds."""
    await _receive(request, body_bound(request))


def body_bound(request: Request) -> int:
    """Give the most bytes that the body of a request may have, compressed or not."""
    settings = services_of(request).settings
    route = route_of(request)
    is_upload = route is not None and route.max_body == "upload"
    return settings.upload_bytes if is_upload else settings.body_bytes


async def _receive(request: Request, bound: int) -> bytes:
    parts: list[bytes] = []
    await _hand_on(request, bound, parts.append)
    return b"".join(parts)


async def _hand_on(request: Request, bound: int, take: Callable[[bytes], None]) -> None:
    stream = request.stream
    if not isinstance(stream, Http) or not stream.request_body:
        return
    if (stream.request_bytes or 0) > bound:  # the head says so already
        raise _too_large(bound)
    stream.request_max_size = bound  # chunks that announce more are refused before they are read
    route = route_of(request)
    timeout_s = services_of(request).settings.body_timeout_s
    if route is not None and route.max_body == "upload":
        timeout_s *= UPLOAD_TIMES
    try:
        async with asyncio.timeout(timeout_s):
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
        raise _too_large(bound) from None


def media_type_of(request: Request, *allowed: str) -> str:
    """Give the media type of a body.

    Raises
    ------
    steelyard.errors.UnsupportedMediaTypeError
        When it is none of those allowed, or not in UTF-8.
    """
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
        """Give the headers to send; Sanic adds an empty ``alt-svc``, which is left out."""
        return ((name, value) for name, value in super().processed_headers if value)


def json_response(value: Any, status: int = 200) -> HTTPResponse:
    """Encode an answer as compact JSON."""
    return ApiResponse(msgspec.json.encode(value), status=status, content_type=JSON)


def reply_response(reply: Reply) -> HTTPResponse:
    """Send an answer that is encoded already, saying in the headers whether it is a replay."""
    response = ApiResponse(reply.body, status=reply.status, content_type=JSON)
    if reply.operation_id is not None:
        response.headers["X-Operation-ID"] = reply.operation_id
    if reply.is_replay:
        response.headers["Idempotency-Replayed"] = "true"
    return response


async def send_stream(request: Request, pieces: Iterator[bytes], media_type: str) -> None:
    """Send an answer piece by piece; each is made on a thread.

    What fails before the first piece is refused as ever. After it, the connection is closed before
    the end, which every client takes for a failure.
    """
    piece = await asyncio.to_thread(next, pieces, None)
    # respond() gives back what it is given; middleware may not replace it here.
    response: ApiResponse = await request.respond(ApiResponse(content_type=media_type))
    try:
        while piece is not None:
            await response.send(piece)
            piece = await asyncio.to_thread(next, pieces, None)
        await response.send(end_stream=True)
    except Exception as error:  # noqa: BLE001  the status is sent, so nothing can be told
        _log.error("A stream broke off: %s", error, exc_info=error)
        if request.transport is not None:
            request.transport.close()


def text_response(text: str | bytes, media_type: str) -> HTTPResponse:
    """Send a text of another type than JSON."""
    return ApiResponse(text, content_type=media_type)
