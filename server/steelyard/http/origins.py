"""Browsers: under which names this server is called, and whose pages may write to it.

A page of another site can point its own name at this machine (DNS rebinding), and can send a form
here without asking first. The first shows in ``Host``, the second in ``Origin`` and
``Sec-Fetch-Site``, which pages cannot set.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from sanic import Request

from steelyard.errors import CrossSiteError, MisdirectedRequestError
from steelyard.http.routing import Access, Route
from steelyard.settings import Settings
from steelyard.wire.hosts import host_names, host_of, is_loopback
from steelyard.wire.violations import show


class Origins:
    """The names of one server.

    On a loopback address it is called ``localhost``, a loopback address, or a name of the setting
    ``hosts``. On another address any name is taken until that setting has one: keys are needed
    there, and a page of another site has none.
    """

    def __init__(self, settings: Settings) -> None:
        self._names = host_names(settings.hosts)
        self._takes_any = not (self._names or is_loopback(settings.host))

    def check_host(self, request: Request) -> None:
        """Refuse a request that was meant for a server of another name."""
        name = host_of(request.headers.get("host", ""))
        if self._takes_any or name in self._names or is_loopback(name):
            return
        raise MisdirectedRequestError(
            f"This server is not called {show(name)}; call it 127.0.0.1 or localhost, or add the "
            "name to the setting hosts (STEELYARD_HOSTS)."
        )

    def check_page(self, request: Request, route: Route) -> None:
        """Refuse a write that a page of another site sends; public routes take anybody's."""
        if route.access is Access.PUBLIC or not route.is_write:
            return
        origin = request.headers.get("origin")
        is_foreign = origin is not None and not self._is_own(request, origin)
        if is_foreign or request.headers.get("sec-fetch-site") == "cross-site":
            raise CrossSiteError(
                f"A page of {show(origin) if origin else 'another site'} may not write here; call "
                "this route from a program, or add the page's host to the setting hosts "
                "(STEELYARD_HOSTS)."
            )

    def check_console(self, request: Request) -> None:
        """Refuse a cookie that a page of another origin sends, be it on another port alone."""
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        if site not in {"same-origin", "none"} or not self._is_same(request, origin):
            raise CrossSiteError(
                f"A page of {show(origin) if origin else 'another site'} may not use the console of "
                "this server; open its own pages, or add the page's host to the setting hosts "
                "(STEELYARD_HOSTS)."
            )

    def _is_same(self, request: Request, origin: str | None) -> bool:
        if origin is None:
            return True
        try:
            url = urlsplit(origin)
            name = url.hostname or ""
        except ValueError:
            return False
        return url.netloc.lower() == request.headers.get("host", "").lower() or name in self._names

    def _is_own(self, request: Request, origin: str) -> bool:
        try:
            name = urlsplit(origin).hostname or ""
        except ValueError:
            return False
        own = host_of(request.headers.get("host", ""))
        return bool(name) and (
            name == own or name in self._names or (is_loopback(own) and is_loopback(name))
        )


#: What browsers are told with every answer: not to guess a type, run it, frame it or say whence.
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
