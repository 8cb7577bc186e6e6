"""Serving the workbench: Panel's own server on loopback, one app a browser, nothing from outside."""

from __future__ import annotations

import logging
import socket
from typing import Any

import panel as pn

from steelyard.client import Client, ClientOptions
from steelyard_workbench.app import App, prepare

_log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


def make_app(url: str, api_key: str | None = None) -> Any:
    """Give what Panel calls for each browser.

    Parameters
    ----------
    url : str
        The server's address.
    api_key : str, optional
        What to ask it with.
    """
    client = Client(ClientOptions(url, api_key))

    def app() -> Any:
        prepare()
        return App(client).view()

    return app


def free_port(host: str = LOOPBACK) -> int:
    """Give a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        port: int = listener.getsockname()[1]
        return port


class Served:
    """A workbench that is served from a thread of this process.

    Parameters
    ----------
    url : str
        The server's address.
    api_key : str, optional
        What to ask it with, where accounts are on.
    port : int, default 0
        Port to listen on; 0 takes a free one.
    host : str
        Address to listen on; the workbench has no accounts of its own, so loopback.

    Attributes
    ----------
    url : str
        The workbench's address.
    """

    def __init__(
        self, url: str, *, api_key: str | None = None, port: int = 0, host: str = LOOPBACK
    ) -> None:
        chosen = port or free_port(host)
        self.url = f"http://{host}:{chosen}"
        self._thread = pn.serve(
            {"/": make_app(url, api_key)}, **_options(host, chosen), start=True, threaded=True
        )

    def stop(self) -> None:
        """Stop serving."""
        self._thread.stop()


def open_server(
    server: str, *, port: int = 0, host: str = LOOPBACK, api_key: str | None = None
) -> Any:
    """Bind a port for the workbench, without serving yet.

    Parameters
    ----------
    server : str
        The server's address.
    port, host, api_key
        As for ``Served``.

    Returns
    -------
    panel server
        With ``start``, ``stop``, ``io_loop``, ``address`` and ``port``.

    Raises
    ------
    OSError
        When the port is taken.
    """
    chosen = port or free_port(host)
    return pn.serve({"/": make_app(server, api_key)}, **_options(host, chosen), start=False)


def _options(host: str, port: int) -> dict[str, Any]:
    return {
        "port": port,
        "address": host,
        "websocket_origin": [f"{host}:{port}", f"localhost:{port}"],
        "show": False,
        "title": "Steelyard",
        "verbose": False,
    }
