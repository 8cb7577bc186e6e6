"""The server's memory and health while many upload at once and many read slowly; see README.md."""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil
from crowd import serving
from machine import describe_machine
from quality_tables import text_table

#: Rows of an upload, and characters of each: 16 MB less a little, and a dataset to download.
_ROWS, _CHARACTERS = 14_000, 1_000
_DECISION = {"id": "kind", "question": "Is it long?", "outcomes": {"yes": None, "no": None}}
_TICK_S = 0.05
_SETTLE_S = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each server; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="PYTHON", help="interpreter that has another version")
    parser.add_argument("--seconds", type=float, default=20.0, help="that slow readers read")
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument("--uploads", type=int, default=60)
    parser.add_argument("--rows", type=int, default=_ROWS)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    pythons = {"this": sys.executable} | ({"before": options.against} if options.against else {})
    print("\n".join(describe_machine()))
    results = {}
    for name, python in pythons.items():
        with serving(python) as (port, keys):
            results[name] = asyncio.run(_measure(port, keys["crowd"], options))
    header = ["server", "load", "idle MB", "most MB", "after MB", "health p50 ms", "health max ms"]
    body = [
        [server, load, *(f"{row[name]:.0f}" for name in _FIGURES), str(row["statuses"])]
        for server, rows in results.items()
        for load, row in rows.items()
    ]
    print(text_table([*header, "statuses"], body))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


_FIGURES = ("idle_mb", "most_mb", "after_mb", "health_p50_ms", "health_max_ms")


def _upload(port: int, key: str, name: str, rows: bytes) -> bytes:
    head = (
        f"POST /v1/datasets HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/x-ndjson\r\nX-Dataset-Name: {name}\r\n"
        f"Content-Length: {len(rows)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + rows


def _rows(number: int) -> bytes:
    text = "word " * (_CHARACTERS // 5)
    targets = [{"kind": {"yes": float(n), "no": float(1 - n)}} for n in (0, 1)]
    rows = (
        {"context": f"{n} {text}", "decisions": [_DECISION], "targets": targets[n % 2]}
        for n in range(number)
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


async def _measure(port: int, key: str, options: argparse.Namespace) -> dict[str, Any]:
    created = await _send(port, _upload(port, key, "large", _rows(options.rows)))
    if not created.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(created[:600].decode())
    dataset = json.loads(created.partition(b"\r\n\r\n")[2])["id"]
    readers = partial(_read_slowly, port, key, dataset, options.readers, options.seconds)
    uploads = partial(_upload_all, port, key, options.uploads, options.rows)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return {
            f"{options.readers} slow readers": await _watch(port, pool, readers),
            f"{options.uploads} uploads": await _watch(port, pool, uploads),
        }


def _read_slowly(port: int, key: str, dataset: str, number: int, seconds: float) -> Counter[str]:
    """Read a whole download at 4 KB a second, many times at once; return the statuses."""
    seen: Counter[str] = Counter()

    async def read() -> None:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", port))
        request = (
            f"GET /v1/datasets/{dataset}/download HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {key}\r\n\r\n"
        )
        with sock, suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await loop.sock_sendall(sock, request.encode())
                seen[(await loop.sock_recv(sock, 12))[9:].decode()] += 1
                while await loop.sock_recv(sock, 4_096):  # noqa: ASYNC110  its pace
                    await asyncio.sleep(1.0)

    asyncio.run(_all([read() for _ in range(number)]))
    return seen


def _upload_all(port: int, key: str, number: int, n_rows: int) -> Counter[str]:
    """Upload a dataset many times at once; return the statuses."""
    rows = _rows(n_rows)
    seen: Counter[str] = Counter()

    async def upload(name: str) -> None:
        seen[(await _send(port, _upload(port, key, name, rows)))[9:12].decode()] += 1

    asyncio.run(_all([upload(f"upload {n}") for n in range(number)]))
    return seen


async def _all(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*work)


async def _memory_at_rest(port: int) -> float:
    await asyncio.sleep(_SETTLE_S)
    return memory_of(port)


async def _watch(
    port: int, pool: ProcessPoolExecutor, load: Callable[[], Counter[str]]
) -> dict[str, Any]:
    """Run a load; return memory before, at most and after it, and how health answered."""
    idle = most = await _memory_at_rest(port)
    health: list[float] = []
    running = pool.submit(load)
    while not running.done():
        began = time.perf_counter()
        await _send(
            port,
            f"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode(),
        )
        health.append((time.perf_counter() - began) * 1e3)
        most = max(most, memory_of(port))
        await asyncio.wait({asyncio.wrap_future(running)}, timeout=_TICK_S)
    statuses = dict(running.result())
    after = await _memory_at_rest(port)
    health.sort()
    return {
        "idle_mb": idle,
        "most_mb": most,
        "after_mb": after,
        "health_p50_ms": health[len(health) // 2],
        "health_max_ms": health[-1],
        "statuses": statuses,
    }


def memory_of(port: int) -> float:
    """Return the megabytes that whatever listens on the port holds, with its children."""
    process = listener(port)
    family = [process, *process.children(recursive=True)]
    return sum(one.memory_info().rss for one in family) / 1e6


def listener(port: int) -> psutil.Process:
    """Return the process that listens on a port of this machine."""
    for process in psutil.process_iter(["pid"]):
        with suppress(psutil.Error):
            if any(
                one.status == psutil.CONN_LISTEN and one.laddr.port == port
                for one in process.net_connections("tcp")
            ):
                return process
    raise RuntimeError(f"Nothing listens on port {port}.")


async def _send(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        with suppress(ConnectionError):
            await writer.drain()
        with suppress(ConnectionError):
            return await reader.read()
        return b"HTTP/1.1 000"
    finally:
        writer.close()


if __name__ == "__main__":
    sys.exit(main())
