"""Clients that ask a server as fast as it answers, each over one connection.

HTTP is written out by hand: the clients share the machine with the server, so they must be cheap.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence


class UnexpectedAnswerError(Exception):
    pass


def make_request(port: int, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a decide request as it goes over the wire."""
    lines = [
        "POST /v1/decide HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def run_clients(port: int, requests: Sequence[Sequence[bytes]]) -> list[float]:
    """Send each client's requests one after the other, all clients at once; return milliseconds."""

    async def run() -> list[float]:
        clients = await asyncio.gather(*(_run_client(port, mine) for mine in requests))
        return [ms for client in clients for ms in client]

    return asyncio.run(run())


async def _run_client(port: int, requests: Sequence[bytes]) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    try:
        for request in requests:
            began = time.perf_counter()
            writer.write(request)
            await _read_answer(reader)
            times.append((time.perf_counter() - began) * 1e3)
    finally:
        writer.close()
    return times


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, _, rest = head.partition(b"content-length:")
    body = await reader.readexactly(int(rest.partition(b"\r\n")[0]))
    if not head.startswith(b"http/1.1 200 "):
        raise UnexpectedAnswerError(body.decode()[:500])
    return body
