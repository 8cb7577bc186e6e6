"""Clients in closed and in open loop, and the figures of a round.

HTTP is written out by hand: one process is every client, so a request must be cheap to send.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class Answers:
    """Answers: milliseconds of the right ones, and the errors by name."""

    milliseconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    last_error: str = ""


class Client:
    """One connection, opened when it is first needed and again after the server closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; give the answer's status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            _, _, rest = head.partition(b"content-length:")
            body = await reader.readexactly(int(rest.partition(b"\r\n")[0]))
        except BaseException:
            self.close()
            raise
        if b"connection: close" in head:
            self.close()
        return int(head.split(b" ", 2)[1]), body

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def ask_into(answers: Answers, client: Client, request: bytes, began: float) -> None:
    """Send a request and note how long after ``began`` its answer was there, or its error."""
    try:
        status, body = await client.ask(request)
    except (OSError, EOFError, ValueError) as error:
        answers.errors[type(error).__name__] += 1
        answers.last_error = str(error)
        return
    if status != 200:
        answers.errors[f"HTTP {status}"] += 1
        answers.last_error = body.decode(errors="replace")[:300]
        return
    answers.milliseconds.append((time.perf_counter() - began) * 1e3)


def closed_loop(
    port: int, requests: Sequence[bytes], n_clients: int, timeout_s: float | None = None
) -> Answers:
    """Send the requests from so many clients, each waiting for an answer before it asks again."""

    async def run() -> Answers:
        answers, waiting = Answers(), deque(requests)

        async def work() -> None:
            client = Client(port)
            try:
                while waiting:
                    request = waiting.popleft()
                    await ask_into(answers, client, request, time.perf_counter())
            finally:
                client.close()

        began = time.perf_counter()
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(*(work() for _ in range(min(n_clients, len(requests)))))
        answers.seconds = time.perf_counter() - began
        return answers

    return asyncio.run(run())


def arrivals(n: int, rate: float, seed: int) -> np.ndarray:
    """Return the seconds at which ``n`` requests arrive, ``rate`` a second on average (Poisson)."""
    return np.random.default_rng([3, seed]).exponential(1 / rate, n).cumsum()


def open_loop(port: int, requests: Sequence[bytes], n_clients: int, at: np.ndarray) -> Answers:
    """Send each request at its time, however long the others take.

    At most ``n_clients`` are under way; others wait for a free connection, and their wait counts:
    a time is from when a request was due to when its answer was there.
    """

    async def run() -> Answers:
        answers = Answers()
        free: asyncio.Queue[Client] = asyncio.Queue()
        clients = [Client(port) for _ in range(n_clients)]
        for client in clients:
            free.put_nowait(client)

        async def send(request: bytes, due: float) -> None:
            client = await free.get()
            try:
                await ask_into(answers, client, request, due)
            finally:
                free.put_nowait(client)

        began = time.perf_counter()
        sent = []
        for request, second in zip(requests, at, strict=True):
            await asyncio.sleep(max(0.0, began + second - time.perf_counter()))
            sent.append(asyncio.create_task(send(request, began + second)))
        await asyncio.gather(*sent)
        answers.seconds = time.perf_counter() - began
        for client in clients:
            client.close()
        return answers

    return asyncio.run(run())
