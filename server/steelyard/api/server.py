"""Running an application in this process until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from sanic import Sanic


def run_server(
    app: Sanic[Any, Any], listener: socket.socket, *, on_ready: Callable[[], None]
) -> None:
    """Serve on a bound socket until SIGINT or SIGTERM; running requests are answered first.

    Parameters
    ----------
    app : sanic.Sanic
        From ``create_app``.
    listener : socket.socket
        Bound; closed when the server stops.
    on_ready : callable
        Called once, when the server answers.
    """

    async def ready(_: Sanic[Any, Any]) -> None:
        on_ready()

    app.after_server_start(ready)
    app.run(sock=listener, single_process=True, access_log=False, motd=False)
