"""A forwarder in front of a PostgreSQL server on a Unix socket, which may take long, or pass nothing on."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

#: PostgreSQL's message that runs a statement whose parameters were sent.
_EXECUTE = b"E\0\0\0\x09\0\0\0\0\0"


class Forwarder:
    """Passes connections on, until they fall silent: both sides stay open and hear nothing."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        #: Whether connections that are made now pass nothing on either.
        self.is_silent = False
        #: Seconds that each way takes.
        self.delay_s = 0.0
        #: What was asked so far: statements, and the trips that they took.
        self.n_statements = self.n_trips = 0
        self._silent: set[int] = set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def silence_old(self) -> None:
        """Pass nothing on between those that are connected now; new connections work."""
        self._silent |= set(range(len(self._pairs)))

    def fall_silent(self) -> None:
        """Pass nothing on any more, also between those that connect."""
        self.is_silent = True
        self.silence_old()

    def speak(self) -> None:
        """Pass on data of new connections; the old ones stay silent."""
        self.is_silent = False

    def close(self) -> None:
        """End every connection."""
        for one in (self._listener, *(side for pair in self._pairs for side in pair)):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                # As PostgreSQL does: else a long answer waits 40 ms for the other side's receipt.
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server = socket.socket(socket.AF_UNIX)
                with contextlib.suppress(OSError):
                    server.connect(self._path)
                number = len(self._pairs)
                self._pairs.append((client, server))
                if self.is_silent:
                    self._silent.add(number)
                threading.Thread(target=self._pass_on, args=(number,), daemon=True).start()

    def _pass_on(self, number: int) -> None:
        client, server = self._pairs[number]
        to = {client: server, server: client}
        waiting: deque[tuple[float, socket.socket, bytes]] = deque()
        is_answered = True
        with contextlib.suppress(OSError, ValueError):
            while True:
                left_s = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
                for side in select.select(list(to), [], [], left_s)[0]:
                    data = side.recv(65_536)
                    if number in self._silent:
                        if not data:
                            return
                        continue
                    if side is client:
                        self.n_statements += data.count(_EXECUTE) + data.startswith(b"Q")
                        self.n_trips += is_answered
                    is_answered = side is server
                    waiting.append((time.monotonic() + self.delay_s, to[side], data))
                while waiting and waiting[0][0] <= time.monotonic():
                    _, there, data = waiting.popleft()
                    if not data:
                        there.shutdown(socket.SHUT_WR)
                        return
                    there.sendall(data)


@contextmanager
def forwarded(url: str) -> Iterator[tuple[Forwarder, str]]:
    """Yield a forwarder in front of a test database, and the URL that leads through it."""
    parts = urlsplit(url)
    [folder] = parse_qs(parts.query)["host"]
    forwarder = Forwarder(f"{folder}/.s.PGSQL.5432")
    try:
        address = f"{parts.username}@127.0.0.1:{forwarder.port}"
        yield forwarder, f"{parts.scheme}://{address}{parts.path}?sslmode=disable"
    finally:
        forwarder.close()
