"""A chat server with log probabilities, and servers of every wire that go wrong in one way."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What a fault does to an answer's body; the others are the handler's own.
Spoil = Callable[[Any], Any]


@dataclass
class RemoteModel:
    """A server that answers every wire, and its recorded requests."""

    url: str
    #: Makes the answer's body, or its status and body, of a request's path and body.
    answer: Callable[[str, Any], Any]
    #: How it goes wrong: see ``_Handler``; nothing where empty.
    fault: str = ""
    #: Which bodies are answered with status 500.
    fails: Callable[[Any], bool] = lambda _: False
    asked: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)


def share_of(text: str, seed: str = "") -> float:
    """Return a fixed weight between 0.1 and 1.1 for a text."""
    return 0.1 + int.from_bytes(hashlib.sha256(f"{seed}{text}".encode()).digest()[:4]) / 2**32


def chat_answer(path: str, body: Any, bias: float = 1.5) -> Any:
    """Answer as a chat server that prefers outcomes by their text alone, and the first a little."""
    assert path == "/v1/chat/completions"
    asked = body["messages"][-1]["content"].splitlines()
    start = next(n for n, line in enumerate(asked) if line in {"Options:", "Levels, in order:"})
    lines = asked[start + 1 : asked.index("", start)]
    split = [re.fullmatch(r"(\w+)(?:\. (.*))?", line) for line in lines]
    options = [(found[1], found[2] or found[1]) for found in split if found]
    weights = {label: share_of(text) for label, text in options}
    weights[options[0][0]] *= bias
    total = sum(weights.values()) / 0.9
    tokens = [(f" {label}", share / total) for label, share in weights.items()]
    tokens = sorted([*tokens, ("The", 0.1)], key=lambda one: -one[1])[: body["top_logprobs"]]
    top = [{"token": token, "logprob": math.log(share)} for token, share in tokens]
    content = [{**top[0], "top_logprobs": top}]
    return {
        "choices": [{"message": {"content": top[0]["token"]}, "logprobs": {"content": content}}]
    }


def thinking_answer(path: str, body: Any, mass: float = 2e-4) -> Any:
    """Answer as a reasoning model of which one token is asked: the labels are noise beside ``<think>``."""
    answered = chat_answer(path, body)
    [content] = answered["choices"][0]["logprobs"]["content"]
    top = [
        {**entry, "logprob": entry["logprob"] + math.log(mass)} for entry in content["top_logprobs"]
    ]
    content["top_logprobs"] = [{"token": "<think>", "logprob": math.log(1 - mass)}, *top]
    return answered


def switchable_answer(path: str, body: Any) -> Any:
    """Answer as a reasoning model whose thinking can be switched off."""
    is_off = body.get("chat_template_kwargs", {}).get("enable_thinking") is False
    return chat_answer(path, body) if is_off else thinking_answer(path, body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet: the second of two waits 40 ms for the first's receipt
    model: RemoteModel

    def do_POST(self) -> None:
        model = self.model
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model.asked.append((self.path, body))
        model.headers.append(dict(self.headers))
        if model.fault == "hangs":
            model.may_answer.wait(60)
        if model.fault == "cuts off":
            self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"answers"')
            self.close_connection = True
            return
        fault = "status 500" if model.fails(body) else model.fault
        if fault.startswith("status "):
            self._send(int(fault.split()[1]), b"{}", {"Retry-After": "0.1"})
            return
        if model.fault == "once 429" and len(model.asked) == 1:
            self._send(429, b"{}", {"Retry-After": "0.1"})
            return
        if model.fault == "not JSON":
            self._send(200, b"<html>")
            return
        if model.fault == "endless":
            self._send(200, b" " * (5 * 1024 * 1024))
            return
        if model.fault == "redirects":
            self._send(307, b"", {"Location": "http://127.0.0.1:1/"})
            return
        answer = model.answer(self.path, body)
        status, content = answer if isinstance(answer, tuple) else (200, answer)
        self._send(status, json.dumps(content).encode())

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        with suppress(ConnectionError):
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write no line for a request."""


@contextmanager
def remote_model(
    answer: Callable[[str, Any], Any] = chat_answer, fault: str = ""
) -> Iterator[RemoteModel]:
    """Run a server on loopback."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    model = RemoteModel(f"http://127.0.0.1:{server.server_port}", answer, fault)
    handler.model = model  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield model
    finally:
        model.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
