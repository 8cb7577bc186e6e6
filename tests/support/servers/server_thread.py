"""An application served on a loop of a thread of its own, as ``steelyard serve`` serves it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable

from sanic import Sanic

from steelyard.http.server import Stop, serve_app


class ServerThread:
    """Serves until stopped; raises its own errors in the caller's thread.

    ``make`` is called in the thread, so that the application belongs to its loop.
    """

    def __init__(self, make: Callable[[], Sanic], listener: socket.socket) -> None:
        self._make = make
        self._listener = listener
        self._is_up = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="live-server", daemon=True)
        self._thread.start()
        assert self._is_up.wait(timeout=30)
        if self._failure is not None:
            raise self._failure

    def ask_to_stop(self, *within_s: float) -> None:
        """Ask once; the second time it does not wait for running work."""
        self._loop.call_soon_threadsafe(self._stop.ask, *within_s)

    def join(self, timeout_s: float = 30) -> None:
        """Wait until it has stopped."""
        self._thread.join(timeout=timeout_s)
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Ask, and wait."""
        if self._thread.is_alive():
            self.ask_to_stop()
        self.join()

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001
            self._failure = error
        finally:
            self._is_up.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = Stop()
        await serve_app(self._make(), self._listener, self._stop, on_ready=self._is_up.set)


def exchange(host: str, port: int, sent: bytes, *, timeout_s: float = 10) -> bytes:
    """Send raw bytes and give all that comes back until the server closes."""
    received = b""
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(sent)
        while chunk := connection.recv(65536):
            received += chunk
    return received
