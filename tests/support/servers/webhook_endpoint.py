"""An endpoint of webhooks: it verifies its events, stores them, and fails on demand."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


@dataclass(frozen=True)
class Received:
    """A delivery that came in."""

    id: str
    headers: dict[str, str]
    body: bytes
    told: Any


@dataclass
class Endpoint:
    """Its address, its answers, and its recorded events."""

    url: str
    port: int
    secret: str = ""
    status: int = 200
    body: bytes = b"ok"
    hangs: bool = False
    location: str = ""
    received: list[Received] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    @property
    def told(self) -> list[Any]:
        """The bodies that came in, decoded."""
        return [one.told for one in self.received]


class _Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint

    def do_POST(self) -> None:
        endpoint = self.endpoint
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        told = Webhook(endpoint.secret).verify(body, headers) if endpoint.secret else None
        endpoint.received.append(Received(headers["webhook-id"], headers, body, told))
        if endpoint.hangs:
            endpoint.may_answer.wait(30)
        self.send_response(endpoint.status)
        if endpoint.location:
            self.send_header("Location", endpoint.location)
        self.send_header("Content-Length", str(len(endpoint.body)))
        self.end_headers()
        self.wfile.write(endpoint.body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def webhook_endpoint(context: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """Run an endpoint on a free port of this machine."""
    handler = type("_Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # the sender gave up
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    port = server.server_address[1]
    endpoint = handler.endpoint = Endpoint(f"http://127.0.0.1:{port}/hook", port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
