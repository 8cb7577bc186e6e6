"""A server with scripted answers, behind either client, which records its requests."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from steelyard.client import AsyncClient, Client, ClientOptions
from steelyard.errors import SteelyardError

URL = "http://scale.test:8420"
API_KEY = "sy_sk_verysecret"

#: The parts of a decide answer that a test does not look at.
DECIDE_ANSWER = {
    "id": "dec_1",
    "model": "hashing",
    "decisions": {
        "refund": {
            "kind": "binary",
            "probabilities": {"yes": 0.75, "no": 0.25},
            "top": "yes",
            "p_top": 0.75,
            "action": "yes",
        }
    },
    "usage": {
        "input_tokens": 7,
        "tokenizer": {"name": "words", "revision": "1", "sha256": "0" * 64},
        "decisions": 1,
        "prompt_tokens": 7,
    },
    "timing_ms": {"total": 1.5},
    "fallback": None,
    "charge": {
        "operation_id": "op_1",
        "currency": "USD",
        "amount_usd": "0",
        "reserved_usd": "0",
    },
    "stored": True,
}

Reply = httpx.Response | BaseException


def answer(body: object = DECIDE_ANSWER, status: int = 200, **headers: str) -> httpx.Response:
    """Return a response; underscores in the headers' names are hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=named)


def refusal(error: SteelyardError, *, retryable: bool | None = None, **headers: str) -> Any:
    body = error.body("req_1")
    if retryable is not None:
        body["error"]["retryable"] = retryable
    return answer(body, error.status, **headers)


class ScriptedServer:
    """Answers in order; the last answer again when none is left."""

    def __init__(self, client_class: type, replies: Sequence[Reply], **options: Any) -> None:
        self._client_class = client_class
        self._replies = list(replies)
        self._options = ClientOptions(URL, **options)
        self.requests: list[httpx.Request] = []
        self.sleeps: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return httpx.Response(reply.status_code, content=reply.content, headers=reply.headers)

    def ask(self, use: Callable[[Any], Any]) -> Any:
        """Return the result of a client's call; ``use`` takes the client and calls one method."""
        transport = httpx.MockTransport(self)
        if self._client_class is Client:
            with Client(self._options, transport=transport, sleep=self.sleeps.append) as client:
                return use(client)
        return asyncio.run(self._ask_async(transport, use))

    async def _ask_async(self, transport: httpx.MockTransport, use: Callable[[Any], Any]) -> Any:
        async def sleep(seconds: float) -> None:
            self.sleeps.append(seconds)

        async with AsyncClient(self._options, transport=transport, sleep=sleep) as client:
            answered = use(client)
            if hasattr(answered, "__aiter__"):
                return [item async for item in answered]
            return await answered

    def header(self, name: str) -> list[str | None]:
        """Return a header of every request."""
        return [request.headers.get(name) for request in self.requests]

    def body(self, index: int = 0) -> Any:
        """Return a request's body, decompressed and decoded."""
        request = self.requests[index]
        is_packed = request.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(request.content) if is_packed else request.content)
