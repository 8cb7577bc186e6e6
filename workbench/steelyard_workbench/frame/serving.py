"""Serving the workbench: Panel's own server on loopback, one app a browser, nothing from outside."""

from __future__ import annotations

import asyncio
import atexit
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import panel as pn
from bokeh.application.application import SessionContext
from bokeh.document import Document
from bokeh.server.session import ServerSession
from panel.io.resources import LOCAL_DIST
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.iostream import StreamClosedError
from tornado.web import OutputTransform
from tornado.websocket import WebSocketClosedError

from steelyard.client import Client, ClientOptions
from steelyard.wire.hosts import host_names, host_of, is_loopback
from steelyard_workbench.frame.app import App, prepare
from steelyard_workbench.frame.identity_return import PATH as IDENTITY_PATH
from steelyard_workbench.frame.identity_return import IdentityHandler, Visits, state_cookie
from steelyard_workbench.frame.navigation import import_pages
from steelyard_workbench.frame.page_handler import FRAME, Frame, is_dark, send_frames_first
from steelyard_workbench.frame.scripts import PATH as SCRIPTS_PATH
from steelyard_workbench.frame.scripts import ScriptsHandler
from steelyard_workbench.frame.visitors import PATH, SERVER_COOKIE, TicketHandler, Visitors

_log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
#: How many browsers' apps are kept at hand beside the newest.
_MOST_APPS = 15
#: How many pages are kept for browsers that may come, or come back; milliseconds that each has to come,
#: and milliseconds between two looks.
_MOST_UNUSED, _COMES_MS, _LOOK_MS = 15, 5000, 1000
#: Seconds that a workbench has to end, to draw its first page, and to begin to listen.
_END_S, _DRAW_S, _START_S = 5.0, 30.0, 60.0
_MISDIRECTED = 421
#: What Tornado calls no handler for.
_NO_METHOD = "MISDIRECTED"
_SCHEMES = ("http://", "https://")
#: Who may show a page in a frame: itself, and notebooks on this machine.
_FRAMES = "'self' http://localhost:* http://127.0.0.1:* vscode-webview:"


def make_app(visitors: Visitors, *, opened: Callable[[App], None] | None = None) -> Any:
    """Return the function that Panel calls for each browser; ``opened`` is called with the app of each."""

    def app() -> Any:
        asyncio.get_running_loop().set_exception_handler(on_loop_error)
        load_from_here(pn.state.curdoc)
        pn.state.on_session_destroyed(let_go)
        if (context := pn.state.curdoc.session_context) is not None:
            end_oldest(context.server_context.sessions)
        prepare()
        # Parts of the other theme would be drawn in that first, and then anew.
        theme = pn.state.session_args.get("theme", [b""])[0].decode().strip('"')
        pn.config.theme = "dark" if is_dark(theme, pn.state.cookies) else "default"
        new_app = App(visitors.client(), visitors)
        if opened is not None:
            opened(new_app)
        return new_app.view()

    return app


def load_from_here(document: Document) -> None:
    """Write that a browser's app loads its style sheets from this server.

    Panel says so where it serves the page. A browser that comes back after its session has ended opens
    another without a page, and would be sent to Panel's CDN.
    """
    path = pn.state.rel_path
    document.template_variables["dist_url"] = f"{path}/{LOCAL_DIST}" if path else LOCAL_DIST


def let_go(session: SessionContext) -> None:
    """Release a page that is closed: Panel 1.9 keeps its notifications, and they the whole page."""
    document = session._document
    for root, (_, _, drawn_in, _) in tuple(pn.state._views.items()):
        if drawn_in is document:
            pn.state._views.pop(root, None)


def end_oldest(sessions: Sequence[ServerSession]) -> None:
    """End the oldest of the sessions that no browser is connected to: each holds a page of megabytes."""
    unused = [session for session in sessions if session.connection_count == 0]
    unused.sort(key=lambda session: session.milliseconds_since_last_unsubscribe)
    for session in unused[_MOST_UNUSED:]:
        if session.milliseconds_since_last_unsubscribe >= _COMES_MS:
            session.request_expiration()


def on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log unhandled errors, except a browser that went away in the middle of a message."""
    if not isinstance(context.get("exception"), WebSocketClosedError | StreamClosedError):
        loop.default_exception_handler(context)


def warm_up(url: str) -> None:
    """Draw a page without a browser: the first page of a process takes twice as long."""
    direct = build_opener(ProxyHandler({}))
    with suppress(OSError), direct.open(f"{url}/?page=datasets", timeout=_DRAW_S) as answer:
        answer.read()


def free_port(host: str = LOOPBACK) -> int:
    """Return a free port of this machine."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        port: int = listener.getsockname()[1]
        return port


class Served:
    """A workbench that is served from a thread of this process; it listens once this is made.

    ``apps`` has that of each browser or cell that opened it, the newest last; the oldest go.
    ``host`` is a loopback address, as the workbench has no accounts of its own; ``hosts`` are
    further names that browsers call it by, separated by commas. Port 0 takes a free one. Raise
    ``OSError`` when the port is taken, or it does not listen within a minute.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        port: int = 0,
        host: str = LOOPBACK,
        hosts: str = "",
    ) -> None:
        own_port = port or free_port(host)
        if port and _listens(host, port):  # which would pass for this one
            raise OSError(f"{host}:{port} is taken by something else.")
        # What is imported in a page that is open gives its components to the next that shows them,
        # and Bokeh draws none where that is a page at its beginning.
        import_pages()
        self.url = f"http://{host}:{own_port}"
        self.apps: list[App] = []
        # Browsers open theirs in the thread that serves, cells in the kernel's.
        self._opening = threading.Lock()
        self._client = Client(ClientOptions(url, api_key))
        visitors = Visitors(url, self._client, has_key=api_key is not None, port=own_port)
        self._thread = pn.serve(
            {"/": make_app(visitors, opened=self.opened)},
            **_options(host, own_port, hosts, visitors),
            start=True,
            threaded=True,
        )
        # A kernel or a script may end without it: its pages would go on asking meanwhile.
        atexit.register(self.stop)
        # A cell is drawn at once: a frame that is refused stays empty.
        has_waited = stop_after_delay(_START_S)
        waiting = Retrying(
            retry=retry_if_exception_type(OSError),
            stop=lambda call: has_waited(call) or not self._thread.is_alive(),
            wait=wait_fixed(0.02),
            reraise=True,
        )
        try:
            waiting(lambda: socket.create_connection((host, own_port), _START_S).close())
        except OSError as error:
            is_dead = not self._thread.is_alive()
            self.stop()
            if is_dead:
                raise OSError(
                    f"The workbench ended before it listened on {host}:{own_port}; the log says why."
                ) from error
            raise

    def stop(self) -> None:
        """Stop serving, and wait until running requests have ended; a second call does nothing."""
        atexit.unregister(self.stop)
        if self._thread.is_alive():
            self._thread.stop()
            # What is at work still asks with the client.
            self._thread.join(_END_S)
        self._client.close()

    def opened(self, app: App) -> None:
        """Keep at hand the app of a browser, or of a cell; the oldest goes for it."""
        with self._opening:
            self.apps = [*self.apps[-_MOST_APPS:], app]


def open_server(
    server: str, *, port: int = 0, host: str = LOOPBACK, hosts: str = "", api_key: str | None = None
) -> Any:
    """Return a Panel server that does not serve yet; raise ``OSError`` when the port is taken."""
    import_pages()
    own_port = port or free_port(host)
    client = Client(ClientOptions(server, api_key))
    visitors = Visitors(server, client, has_key=api_key is not None, port=own_port)
    options = _options(host, own_port, hosts, visitors)
    return pn.serve({"/": make_app(visitors)}, **options, start=False)


def _listens(host: str, port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex((host, port)) == 0


def _options(host: str, port: int, hosts: str, visitors: Visitors) -> dict[str, Any]:
    send_frames_first()
    frame = Frame(visitors, prepare)
    return {
        **server_options(host, port, host_names(hosts)),
        "extra_patterns": [
            (PATH, TicketHandler, {"visitors": visitors}),
            (SCRIPTS_PATH, ScriptsHandler, {"scripts": frame.scripts}),
            (IDENTITY_PATH, IdentityHandler, {"visitors": visitors, "visits": Visits()}),
        ],
        # Bokeh writes the allowed parts of a request into the page, where scripts read them.
        "exclude_cookies": [visitors.cookie, state_cookie(visitors), SERVER_COOKIE],
        "exclude_headers": ["Cookie", "Authorization"],
        "check_unused_sessions_milliseconds": _LOOK_MS,
        FRAME: frame,
        "port": port,
        "address": host,
        "show": False,
        "title": "Steelyard",
        "verbose": False,
    }


def server_options(host: str, port: int, names: frozenset[str]) -> dict[str, Any]:
    """Return the options of Panel's server that keep other sites' pages out; ``names`` are a proxy's."""
    own = f"[{host}]" if ":" in host else host
    origins = [f"{own}:{port}", f"localhost:{port}"]
    return {
        "transforms": [partial(Guard, names)],
        "websocket_origin": [*origins, *sorted(names)],
        "sign_sessions": True,
        "secret_key": secrets.token_urlsafe(32),
    }


class Guard(OutputTransform):
    """Adds the security headers to an answer, or refuses a request that was meant for elsewhere."""

    def __init__(self, names: frozenset[str], request: HTTPServerRequest) -> None:
        self._host = request.host
        is_absolute = (request.uri or "").startswith(_SCHEMES)  # then it says who is meant
        name = host_of(urlsplit(request.uri).netloc if is_absolute else request.host)
        # Panel reads no address of IPv6.
        self._is_ours = ":" not in name and (is_loopback(name) or name in names)
        if not self._is_ours:
            request.method = _NO_METHOD  # so that no page is made for it

    def transform_first_chunk(
        self,
        status_code: int,
        headers: HTTPHeaders,
        chunk: bytes,
        finishing: bool,  # noqa: ARG002
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Return the answer's status, headers and first bytes."""
        if not self._is_ours:
            chunk = b"This workbench is not called that; open it as localhost, or add the name to STEELYARD_HOSTS."
            status_code, headers = _MISDIRECTED, HTTPHeaders({"Content-Type": "text/plain"})
            headers["Content-Length"] = str(len(chunk))
        headers.update(self._security())
        return status_code, headers, chunk

    def transform_chunk(self, chunk: bytes, finishing: bool) -> bytes:  # noqa: ARG002
        """Return further bytes of an answer; none of a refused one."""
        return chunk if self._is_ours else b""

    def _security(self) -> dict[str, str]:
        policy = {
            "default-src": "'self'",
            # Bokeh makes functions of the texts of its callbacks, and styles elements itself.
            "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
            "style-src": "'self' 'unsafe-inline'",
            "img-src": "'self' data: blob:",
            "font-src": "'self' data:",
            "connect-src": f"'self' blob: ws://{self._host} wss://{self._host}",
            "worker-src": "'self' blob:",
            "object-src": "'none'",
            "base-uri": "'self'",
            "form-action": "'self'",
            "frame-ancestors": _FRAMES,
        }
        return {
            "Content-Security-Policy": "; ".join(
                f"{name} {value}" for name, value in policy.items()
            ),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
