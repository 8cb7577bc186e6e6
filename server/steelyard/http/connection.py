"""Sanic's connection, and the framing of a request, read strictly (RFC 9112) before its parser.

Sanic splits a head at its first colons and a chunk at its line ends, and takes any text there. Where it
is laxer than a proxy before it, bytes of one request become another one. Framing that deviates from the
standard in any way is refused here, and the connection closed.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from sanic.exceptions import BadRequest, PayloadTooLarge
from sanic.http import Http, Stage
from sanic.http.http1 import HTTP_CONTINUE
from sanic.server import HttpProtocol
from sanic.signals import SignalRouter

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
#: A path with or without a query, or a whole URL, or the ``*`` of OPTIONS.
_REQUEST_LINE = re.compile(
    rb"%b (?:/|https?://[^/?@ ]+(?=[/? ])|\*(?= ))[\x21-\x7e]* HTTP/1\.[01]" % _TOKEN
)
_ABSOLUTE = re.compile(r"https?://([^/?]+)")
_FIELD = re.compile(rb"(%b):([\t\x20-\xff]*)" % _TOKEN)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,16}(?:[\t ]*;[\t\x20-\x7e]*)?")
#: Most bytes of the line that begins a chunk; extensions mean nothing here.
_MAX_CHUNK_LINE = 256
_END = b"\r\n\r\n"


class StrictHttp(Http):
    """Sanic's reading of HTTP/1.1, of well-formed requests alone."""

    async def http1_request_header(self) -> None:
        """Read a head, once it is known to be well-formed."""
        buffer, seen = self.recv_buffer, 0
        while (end := buffer.find(_END, seen)) < 0:
            seen = max(0, len(buffer) - len(_END) + 1)
            if seen >= self.HEADER_MAX_SIZE:
                raise PayloadTooLarge("Request header exceeds the size limit")
            await self._receive_more()
        if end < self.HEADER_MAX_SIZE:  # Sanic refuses a longer one
            problem = head_problem(bytes(buffer[:end]))
            if problem is not None:
                raise BadRequest(problem)
        await super().http1_request_header()  # type: ignore[no-untyped-call]
        target = _ABSOLUTE.match(self.url or "")
        if target is not None:  # it says who is meant, whatever Host does (RFC 9112, 3.2.2)
            self.request.headers["host"] = target[1]

    async def read(self) -> bytes | None:
        """Read a piece of the body; the line that begins a chunk has to be well-formed."""
        framing: Any = self.request_body
        if framing == "chunked" and self.request_bytes_left == 0:
            await self._check_chunk()
        data: bytes | None = await super().read()
        return data

    async def _check_chunk(self) -> None:
        if self.expecting_continue:
            self.expecting_continue = False
            await self._send(HTTP_CONTINUE)
        buffer = self.recv_buffer
        while (end := buffer.find(b"\r\n", 2)) < 0 and len(buffer) <= _MAX_CHUNK_LINE:
            if len(buffer) >= 2 and buffer[:2] != b"\r\n":
                break
            await self._receive_more()
        line = bytes(buffer[2:end]) if end >= 0 else b""
        is_short = len(line) <= _MAX_CHUNK_LINE
        if buffer[:2] != b"\r\n" or not is_short or not _CHUNK.fullmatch(line):
            self.keep_alive = False
            self.request_body = None  # where the next request would begin is not known
            raise BadRequest("a chunk of the body does not have the form of RFC 9112")


def head_problem(head: bytes) -> str | None:
    r"""Return the problem of a request's head, or ``None``; it quotes nothing of the content.

    >>> head_problem(b"GET / HTTP/1.1\r\nHost: localhost") is None
    True
    >>> head_problem(b"GET ?key=SECRET HTTP/1.1\r\nHost: localhost")
    'its first line is not METHOD /path HTTP/1.1'
    >>> head_problem(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length : 37")
    'header 2 is not NAME: VALUE in visible characters'
    """
    request_line, *lines = head.split(b"\r\n")
    if not _REQUEST_LINE.fullmatch(request_line):
        return "its first line is not METHOD /path HTTP/1.1"
    values: dict[bytes, list[bytes]] = {}
    for number, line in enumerate(lines, start=1):
        field = _FIELD.fullmatch(line)
        if field is None:
            return f"header {number} is not NAME: VALUE in visible characters"
        values.setdefault(field[1].lower(), []).append(field[2].strip())
    hosts = values.get(b"host", [])
    if len(hosts) > 1 or (not hosts and request_line.endswith(b"1.1")):
        return "it does not have exactly one Host header"
    return _length_problem(values.get(b"content-length", []), values.get(b"transfer-encoding", []))


def _length_problem(lengths: list[bytes], codings: list[bytes]) -> str | None:
    if len(lengths) + len(codings) > 1:
        return "it gives its length more than once"
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        return "its Content-Length is not a number"
    if codings and codings[0].lower() != b"chunked":
        return "its Transfer-Encoding is not chunked"
    return None


_OF_A_REQUEST = "http."


class QuietSignals(SignalRouter):
    """Signals that know whether any of a request's has a listener."""

    def __init__(self) -> None:
        super().__init__()
        self._hears_requests = True

    def finalize(self, *args: Any, **kwargs: Any) -> None:
        """Take no more listeners, as Sanic does when it starts to serve."""
        super().finalize(*args, **kwargs)
        self._hears_requests = any(
            route.path.lstrip(self.delimiter).startswith(_OF_A_REQUEST) for route in self.routes
        )

    def reset(self) -> None:
        """Take listeners again."""
        self._hears_requests = True
        super().reset()  # type: ignore[no-untyped-call]

    async def dispatch(self, event: str | Enum, **options: Any) -> Any:
        """Dispatch a signal to its listeners; a request's own without any is dropped."""
        if not self._hears_requests and self.format_event(event).startswith(_OF_A_REQUEST):
            return None
        return await super().dispatch(event, **options)


class Connection(HttpProtocol):
    """Sanic's connection, with the bound on a request's head counted from its first byte.

    Sanic counts ``REQUEST_TIMEOUT`` from the last byte, so that a client which sends one now and
    then would hold its connection for days.
    """

    HTTP_CLASS = StrictHttp

    def data_received(self, data: bytes) -> None:
        """Take received bytes; bytes in the middle of a head do not extend the deadline."""
        counted_from = self._time
        super().data_received(data)
        http = self.http  # not there before the connection's task has begun
        if http is not None and http.stage is Stage.REQUEST:
            self._time = counted_from
