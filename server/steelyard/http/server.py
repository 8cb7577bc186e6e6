"""Run an application in this process until a signal, and stop it without loss.

``serve_app`` is for any event loop and takes no signals; ``run_server`` is a whole process's.
"""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sanic import Sanic

from steelyard.http.connection import Connection
from steelyard.http.metrics import Metrics
from steelyard.http.pipeline import Drain
from steelyard.memory import keep_memory_whole, without_collections

#: Connections that wait to be accepted.
_BACKLOG = 1024
#: Seconds that answers already made have to leave.
_FLUSH_S = 2.0
_POLL_S = 0.02
#: Seconds that requests in flight have once somebody at the terminal pressed Ctrl-C.
_TERMINAL_S = 1.0
#: New objects after which cycles among them are looked for.
_COLLECTED_OBJECTS = 10_000
#: Held by the code that has turned collections off.
_routes_lock = threading.Lock()
#: Seconds after which a thread lets another one run: a decision changes threads a dozen times, and
#: beside one that reads an upload it waited a dozen times for the interpreter's own 5 ms.
_SWITCH_S = 0.0005
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """The wish that a server stops; for the event loop that it serves on."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()
        #: Seconds that it may take before requests in flight are cut off.
        self.within_s = math.inf

    def ask(self, within_s: float = math.inf) -> None:
        """Stop in good order; at the second time, at once."""
        self.within_s = min(self.within_s, within_s)
        if self.asked.is_set():
            self.at_once.set()
        self.asked.set()


async def serve_app(
    app: Sanic[Any, Any],
    listener: socket.socket,
    stop: Stop,
    *,
    on_ready: Callable[[], None] | None = None,
) -> None:
    """Serve on a bound socket until asked to stop.

    Then it goes on for as long as the setting ``leaving_s`` says, and its probes tell so. After that
    no connection is accepted, requests in flight are answered for as long as the setting
    ``shutdown_s`` says, others are refused, and running ones are cut off with a refusal. Both times are
    ``stop.within_s`` at most.
    """
    server: Any = await app.create_server(
        sock=listener, protocol=Connection, backlog=_BACKLOG, return_asyncio_server=True
    )
    await _make_routes(server)
    await server.before_start()
    await server.start_serving()
    await server.after_start()
    metrics: Metrics = app.ctx.metrics
    figures = asyncio.create_task(metrics.keep_current())
    try:
        if on_ready is not None:
            on_ready()
        await stop.asked.wait()
        await _leave(app, stop)
    finally:
        figures.cancel()
        await server.before_stop()
        server.server.close()
        await _drain(app, server.connections, stop)
        await server.after_stop()


async def _make_routes(server: Any) -> None:
    """Compile the routes, with no other thread coming between.

    Sanic makes them from syntax trees. Python before 3.11.8 counts the depth of trees in one place
    for all threads (python/cpython issue 106905), so that a thread which prints a traceback just
    then would end the start with a SystemError. Only a collection of cycles lets one in.
    """
    with _routes_lock, without_collections():
        await server.startup()


async def _leave(app: Sanic[Any, Any], stop: Stop) -> None:
    """Answer for a while yet, and refuse probes, so that proxies stop sending requests here."""
    drain: Drain = app.ctx.drain
    drain.is_leaving = True
    with suppress(TimeoutError):
        async with asyncio.timeout(min(app.ctx.services.settings.leaving_s, stop.within_s)):
            await stop.at_once.wait()


async def _drain(app: Sanic[Any, Any], connections: set[Any], stop: Stop) -> None:
    drain: Drain = app.ctx.drain
    within_s = min(app.ctx.services.settings.shutdown_s, stop.within_s)
    draining = asyncio.create_task(drain.finish(within_s))
    at_once = asyncio.create_task(stop.at_once.wait())
    await asyncio.wait((draining, at_once), return_when=asyncio.FIRST_COMPLETED)
    at_once.cancel()
    draining.cancel()
    loop = asyncio.get_running_loop()
    end = loop.time() + _FLUSH_S
    while connections and loop.time() < end and not stop.at_once.is_set():
        for connection in tuple(connections):
            connection.close_if_idle()
        await asyncio.sleep(_POLL_S)
    for connection in tuple(connections):
        connection.abort()
    await asyncio.sleep(0)  # for the connections' own tasks to notice


def run_server(
    app: Sanic[Any, Any],
    listener: socket.socket,
    *,
    on_ready: Callable[[], None],
) -> None:
    """Serve on a bound socket until SIGTERM, or SIGINT, which waits less; a second one stops at once."""

    async def main() -> None:
        stop = Stop()
        loop = asyncio.get_running_loop()

        def hear(heard: signal.Signals) -> None:
            stop.ask(_TERMINAL_S if heard == signal.SIGINT else math.inf)
            if stop.at_once.is_set():  # a second signal ends the process
                for number in _SIGNALS:
                    loop.remove_signal_handler(number)

        for number in _SIGNALS:
            loop.add_signal_handler(number, hear, number)

        def ready() -> None:
            on_ready()
            _spare_collector()

        try:
            await serve_app(app, listener, stop, on_ready=ready)
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    keep_memory_whole()
    sys.setswitchinterval(_SWITCH_S)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main())


def _spare_collector() -> None:
    """Freeze the objects that live as long as the process, and run Python's cycle collector less.

    A request makes thousands of objects, hardly any in a cycle: at the interpreter's own threshold the
    collector takes a twentieth of its former time.
    """
    gc.freeze()
    gc.set_threshold(_COLLECTED_OBJECTS, 10, 10)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where it is installed: it is faster, and Sanic brings it along."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
