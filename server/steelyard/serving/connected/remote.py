"""Asking a model's server: bounded, and with retries."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import tenacity

from steelyard import tracing
from steelyard.http_clients import open_async_http
from steelyard.serving.connected.answers import (
    UnusableAnswerError,
    context_refusal,
    reported_message,
)
from steelyard.serving.connected.breaker import REFUSED_KEY, RemoteFailureError
from steelyard.serving.connected.declared import ConnectedModel

#: Characters of a model's name at its server.
_MOST_NAME = 128
#: Bytes of an answer; a longer one is not read.
MAX_ANSWER_BYTES = 4 * 1024 * 1024
#: Attempts at one request, and seconds between them, at least and at most.
ATTEMPTS, _FIRST_WAIT_S, _LAST_WAIT_S = 3, 0.1, 2.0


class Remote:
    """The server of one model; for one event loop."""

    def __init__(
        self, name: str, model: ConnectedModel, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        key = model.key()
        self._name = name
        self._url = model.url.rstrip("/")
        self.n_requests = 0
        #: The name that the server gave its model in the last answer.
        self.provider_model = ""
        # The client's own queue for connections is searched whole for each request that waits in it.
        self._places = asyncio.Semaphore(model.concurrency)
        self._client = open_async_http(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            timeout=model.timeout_s,
            limits=httpx.Limits(max_connections=model.concurrency),
            transport=transport,
        )

    async def post(self, path: str, body: Any) -> Any:
        """Send a JSON body to a path and return the decoded answer.

        Raise ``RemoteFailureError`` where the server did not answer, or with a refusal. Raise
        ``UnusableAnswerError`` where the answer is not JSON or too long.
        """
        content = msgspec.json.encode(body)
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=_wait_s,
            retry=tenacity.retry_if_exception(_is_passing),
            reraise=True,
        )
        return await retrying(self._send, endpoint(self._url, path), content)

    async def _send(self, url: str, content: bytes) -> Any:
        attributes = {
            "http.request.method": "POST",
            "server.address": urlsplit(url).hostname or "",
            "steelyard.model": self._name,
        }
        async with self._places:
            with tracing.span("POST", attributes, is_call=True):
                return await self._exchange(url, content)

    async def _exchange(self, url: str, content: bytes) -> Any:
        self.n_requests += 1
        headers = {"Content-Type": "application/json", **tracing.outgoing_headers()}
        try:
            async with self._client.stream(
                "POST", url, content=content, headers=headers
            ) as response:
                if response.status_code != 200 and not 400 <= response.status_code <= 500:
                    raise self._refusal(response)
                received = bytearray()
                async for piece in response.aiter_bytes():
                    received += piece
                    if len(received) > MAX_ANSWER_BYTES:
                        raise UnusableAnswerError(
                            f"The server of {self._name} answered with more than "
                            f"{MAX_ANSWER_BYTES} bytes."
                        )
                if response.status_code != 200:
                    too_long = context_refusal(self._name, response.status_code, received)
                    raise too_long or self._refusal(response, received)
        except httpx.TimeoutException as error:
            message = f"The server of {self._name} did not answer in time."
            raise RemoteFailureError(message) from error
        except httpx.ConnectError as error:
            message = f"The server of {self._name} cannot be reached."
            raise RemoteFailureError(message, is_unreached=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RemoteFailureError(f"The server of {self._name} broke off.") from error
        try:
            answer = msgspec.json.decode(received)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnusableAnswerError(f"The server of {self._name} did not answer JSON.") from error
        name = answer.get("model") if isinstance(answer, dict) else None
        if isinstance(name, str):
            self.provider_model = name[:_MOST_NAME]
        return answer

    def _refusal(
        self, response: httpx.Response, body: bytes | bytearray = b""
    ) -> RemoteFailureError:
        status = response.status_code
        hint = ""
        if status in REFUSED_KEY:
            hint = "; its operator has to check the key"
        elif 300 <= status < 400:
            hint = "; redirects are not followed: its operator has to correct the url"
        return RemoteFailureError(
            f"The server of {self._name} refused the request with status {status}{hint}.",
            status=status,
            retry_after_s=_retry_after_s(response),
            reported=reported_message(body),
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()


def endpoint(url: str, path: str) -> str:
    """Return the address of a path such as ``/v1/decide`` at a server, whose URL may have ``/v1``.

    >>> endpoint("http://localhost:8080", "/v1/decide")
    'http://localhost:8080/v1/decide'
    >>> endpoint("http://localhost:8080/v1", "/v1/decide")
    'http://localhost:8080/v1/decide'
    """
    given = urlsplit(url).path.rstrip("/")
    if given.endswith(path):
        return url.rstrip("/")
    return url.rstrip("/") + (path.removeprefix("/v1") if given.endswith("/v1") else path)


def _is_passing(error: BaseException) -> bool:
    if not isinstance(error, RemoteFailureError) or not error.is_passing:
        return False
    return (error.retry_after_s or 0.0) <= _LAST_WAIT_S


def _wait_s(state: tenacity.RetryCallState) -> float:
    error = None if state.outcome is None else state.outcome.exception()
    requested_s = getattr(error, "retry_after_s", None) or 0.0
    doubled = tenacity.wait_random_exponential(multiplier=_FIRST_WAIT_S, max=_LAST_WAIT_S)(state)
    return float(max(requested_s, doubled))


def _retry_after_s(response: httpx.Response) -> float | None:
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= 3_600 else None
