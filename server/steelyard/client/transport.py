"""How the two clients hold their connections, and receive an answer in bounded time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, BinaryIO

import httpx

from steelyard.client.options import ClientOptions
from steelyard.client.row_sources import Progress
from steelyard.http_clients import open_async_http, open_http

#: Seconds that an idle connection is kept; servers keep theirs longer.
KEEP_ALIVE_S = 180.0

Sleep = Callable[[float], None]
AsyncSleep = Callable[[float], Awaitable[None]]


def open_client(options: ClientOptions, transport: httpx.BaseTransport | None) -> httpx.Client:
    """Return the HTTP client of a blocking client."""
    return open_http(transport=transport, **_arguments(options))


def open_async_client(
    options: ClientOptions, transport: httpx.AsyncBaseTransport | None
) -> httpx.AsyncClient:
    """Return the HTTP client of an asynchronous client."""
    return open_async_http(transport=transport, **_arguments(options))


def _arguments(options: ClientOptions) -> dict[str, Any]:
    return {
        "timeout": options.timeout_s,
        "limits": httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_S),
        # A server on this machine is called without the proxies of the environment.
        "trust_env": not options.is_loopback,
    }


def receive(http: httpx.Client, request: dict[str, Any], ends_at: float | None) -> httpx.Response:
    """Return the whole answer to a request; raises ``httpx.ReadTimeout`` when the time is over.

    httpx bounds each wait alone; ``ends_at`` is a reading of ``time.monotonic``.
    """
    with http.stream(**request) as response:
        if ends_at is not None and isinstance(response.stream, httpx.SyncByteStream):
            response.stream = BoundedStream(response.stream, ends_at)
        response.read()
    return response


async def receive_async(
    http: httpx.AsyncClient, request: dict[str, Any], ends_at: float | None
) -> httpx.Response:
    """Return the whole answer to a request, as ``receive`` does."""
    try:
        async with asyncio.timeout(None if ends_at is None else ends_at - time.monotonic()):
            return await http.request(**request)
    except TimeoutError as error:
        raise httpx.ReadTimeout("") from error


def receive_to(
    http: httpx.Client, request: dict[str, Any], file: BinaryIO, progress: Progress | None
) -> httpx.Response:
    """Write the answer to a request to a file as it comes; that of a failure is read and returned."""
    file.seek(0)
    file.truncate()
    with http.stream(**request) as response:
        if not response.is_success:
            response.read()
            return response
        for chunk in response.iter_bytes():
            file.write(chunk)
            if progress is not None:
                progress(file.tell())
    return response


async def receive_to_async(
    http: httpx.AsyncClient, request: dict[str, Any], file: BinaryIO, progress: Progress | None
) -> httpx.Response:
    """Write the answer to a request to a file, as ``receive_to`` does."""
    file.seek(0)
    file.truncate()
    async with http.stream(**request) as response:
        if not response.is_success:
            await response.aread()
            return response
        async for chunk in response.aiter_bytes():
            file.write(chunk)
            if progress is not None:
                progress(file.tell())
    return response


class BoundedStream(httpx.SyncByteStream):
    """The bytes of an answer, which must be whole by a time: httpx bounds each wait alone."""

    def __init__(self, stream: httpx.SyncByteStream, ends_at: float) -> None:
        self._stream = stream
        self._ends_at = ends_at

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes as they come; raises ``httpx.ReadTimeout`` when the time is over."""
        for chunk in self._stream:
            if time.monotonic() >= self._ends_at:
                raise httpx.ReadTimeout("")
            yield chunk

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
