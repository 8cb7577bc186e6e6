"""``POST /mcp`` of a server itself: the tools for agents at the address of the API.

The protocol's package makes an application of ASGI; its requests and answers go through the server's
own request, so that hosts, origins, limits, logs and a stop hold here too. Its tools then call this
server as the caller does, with the caller's key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from sanic import HTTPResponse, Request

from steelyard.errors import NotFoundError
from steelyard.http.bodies import ApiResponse, read_bytes
from steelyard.http.routing import Access, Call, Route
from steelyard.settings import Settings
from steelyard.wire.hosts import is_loopback

_PATH = "/mcp"
#: What a server that listens on every address is called by itself.
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  compared alone

_Message = MutableMapping[str, Any]


class Agents:
    """The protocol's application, made at the first request; for one event loop alone."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._app: Callable[..., Any] | None = None
        self._runs: asyncio.Task[None] | None = None
        self._stops = asyncio.Event()

    async def answer(self, request: Request) -> HTTPResponse:
        """Return the response of the protocol's application."""
        async with self._lock:
            if self._app is None:
                self._app = await self._start(_address_of(request))
        body = await read_bytes(request)
        sent: list[_Message] = []

        async def receive() -> _Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: _Message) -> None:
            sent.append(message)

        await self._app(_scope_of(request), receive, send)
        head, *parts = sent
        names = {"content-type", "mcp-protocol-version"}
        headers = {name.decode(): value.decode() for name, value in head["headers"]}
        return ApiResponse(
            b"".join(part.get("body", b"") for part in parts),
            status=head["status"],
            headers={name: value for name, value in headers.items() if name in names},
        )

    async def stop(self) -> None:
        """End the application."""
        self._stops.set()
        if self._runs is not None:
            with suppress(asyncio.CancelledError):
                await self._runs

    async def _start(self, url: str) -> Callable[..., Any]:
        try:
            # Its imports take a second, in which decisions go on.
            made = await asyncio.to_thread(_load)
        except ImportError as error:
            raise NotFoundError(
                f"This server has no tools for agents, as the package {error.name} is missing; "
                "install it: pip install 'steelyard[mcp]'."
            ) from None
        app, running = made.make_app(url, _PATH)
        is_running = asyncio.Event()

        async def run() -> None:
            async with running():
                is_running.set()
                await self._stops.wait()

        self._runs = asyncio.create_task(run())
        await is_running.wait()
        answer: Callable[..., Any] = app
        return answer


def _load() -> Any:
    return import_module("steelyard.mcp.server")


def _address_of(request: Request) -> str:
    """Return where this server answers itself."""
    settings: Settings = request.app.ctx.services.settings
    host, port = request.transport.get_extra_info("sockname")[:2]
    if not is_loopback(host):
        host = _ANYWHERE.get(settings.host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _scope_of(request: Request) -> dict[str, Any]:
    """Return a request as ASGI has it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": _PATH,
        "raw_path": _PATH.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in request.headers.items()
            # The body was decompressed.
            if name.lower() not in {"content-encoding", "content-length"}
        ],
    }


async def _answer(request: Request, _call: Call) -> HTTPResponse:
    request.app.ctx.origins.check_console(request)
    agents: Agents = request.app.ctx.agents
    return await agents.answer(request)


ROUTE = Route(
    method="POST",
    path=_PATH,
    handler=_answer,
    summary="Call the tools for agents, by the Model Context Protocol.",
    access=Access.PUBLIC,
    tags=("agents",),
)
