"""A server inside this process: for a notebook, a test, or an application that wants no second one.

The real application on a loopback port, on an event loop of its own in a daemon thread. It takes no
signal handlers, leaves the caller's event loop alone, and ends with ``stop``, with its ``with``
block, or with the process. Two of them share nothing.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import shutil
import socket
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from steelyard.app.application import create_app
from steelyard.app.bootstrap import open_service
from steelyard.app.services import ApiServices
from steelyard.client import Client, ClientOptions
from steelyard.http.server import Stop, serve_app
from steelyard.processes import bound_socket
from steelyard.settings import InvalidSettingError, read_server_settings
from steelyard.storage.home import make_home, sqlite_url

_LOOPBACK = "127.0.0.1"
#: What the key of a server with accounts is called in its account.
_KEY_NAME = "embedded"
#: Settings that are decided here, because the environment's would be another server's.
_OWN_SETTINGS = frozenset({"host", "workers", "url", "api_key"})


class Embedded:
    """A running server and a client of it; ``steelyard.embed`` makes one and has its arguments.

    ``url`` is the server's address and ``home`` where its files are. With accounts, ``api_key`` has
    scope ``full`` and ends with the server; ``client`` asks with it, and is closed with the server.
    A child that is forked from the process has the object and not the server: there ``stop`` does
    nothing, and a client of its own reaches the parent's server at ``url``.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        engine: str | None = None,
        accounts: str = "off",
        port: int = 0,
        **settings: Any,
    ) -> None:
        own = sorted(_OWN_SETTINGS & settings.keys())
        if own:
            raise InvalidSettingError(
                f"An embedded server decides {own[0]} itself; leave it out, or run steelyard serve."
            )
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._closing = ExitStack()
        with ExitStack() as starting:
            starting.callback(self._closing.close)
            self.home = self._open_home(home)
            given = {
                "state_url": sqlite_url(self.home / "state.sqlite"),
                "frames_url": str(self.home / "frames"),
                **settings,
                "accounts": accounts,
                "engine": engine,
                "home": self.home,
                "host": _LOOPBACK,
                "port": port,
                "workers": 1,
            }
            checked = read_server_settings(given)
            self._listener = self._closing.enter_context(_listen(checked.port))
            self.url = f"http://{_LOOPBACK}:{self._listener.getsockname()[1]}"
            services = self._closing.enter_context(open_service(checked))
            self.api_key = self._make_key(services)
            server = _ServerThread(services, self._listener)
            self._closing.callback(server.stop)
            server.start()
            self.client = Client(ClientOptions(self.url, self.api_key))
            self._closing.callback(self.client.close)
            starting.pop_all()
        _running.add(self)
        atexit.register(self.stop)

    @property
    def is_running(self) -> bool:
        """Whether the server answers in this process."""
        return self in _running

    def stop(self) -> None:
        """Stop the server, once requests in flight are answered; again, it does nothing."""
        with self._lock:
            if self._pid != os.getpid() or self not in _running:
                return
            _running.discard(self)
            atexit.unregister(self.stop)
            self._closing.close()

    def __enter__(self) -> Embedded:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Embedded(url={self.url!r}, {'running' if self.is_running else 'stopped'})"

    def _make_key(self, services: ApiServices) -> str | None:
        if services.settings.accounts != "on":
            return None
        made = services.accounts.create_key(name=_KEY_NAME)
        self._closing.callback(services.accounts.revoke_key, made.key.id)
        return made.secret

    def _open_home(self, home: str | Path | None) -> Path:
        if home is not None:
            return make_home(Path(home).expanduser().absolute())
        path = Path(tempfile.mkdtemp(prefix="steelyard-"))
        self._closing.callback(shutil.rmtree, path, ignore_errors=True)
        return path


#: The servers of this process. A forked child has none: threads do not survive a fork.
_running: set[Embedded] = set()


def _forget_in_child() -> None:
    for embedded in _running:
        # Held open here, the port would take connections without answering them.
        embedded._listener.close()
        # Never finalised here: cleaning up would wait for threads and close files that only the
        # parent has. A reference that nothing gives back is the one way to keep Python from it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(embedded._closing))
    _running.clear()


os.register_at_fork(after_in_child=_forget_in_child)


class _ServerThread:
    """An application served on a loop of its own in a daemon thread."""

    def __init__(self, services: ApiServices, listener: socket.socket) -> None:
        self._services = services
        self._listener = listener
        self._has_started = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Stop | None = None
        self._thread = threading.Thread(target=self._main, name="steelyard-embedded", daemon=True)

    def start(self) -> None:
        """Start, and wait until it answers; raise whatever kept it from starting."""
        self._thread.start()
        self._has_started.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop, and wait until it has: requests in flight have the time that is set for them."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            # The loop may close between the question and the call: then it has stopped.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.ask)
        if self._thread.ident is not None:
            self._thread.join()

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  # it is raised where the server is started
            self._failure = error
        finally:
            self._has_started.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), Stop()
        app = create_app(self._services)
        await serve_app(app, self._listener, self._stop, on_ready=self._has_started.set)


def _listen(port: int) -> socket.socket:
    try:
        return bound_socket(_LOOPBACK, port)
    except OSError as error:
        if port == 0:
            raise
        raise OSError(
            error.errno, f"Port {port} cannot be taken ({error.strerror}); give another, or 0."
        ) from None
