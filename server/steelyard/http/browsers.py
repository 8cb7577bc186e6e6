"""Signed-in browsers: the cookie of a session, and the headers that must come beside it.

A page of another site can make a browser send its cookies here. It cannot set the header
``X-Steelyard-Console`` without asking first, which is refused, and it cannot hide its ``Origin``.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass

from sanic import Request

from steelyard.errors import CrossSiteError

COOKIE = "steelyard_session"
CONSOLE_HEADER = "X-Steelyard-Console"
ACCOUNT_HEADER = "X-Steelyard-Account"
_MAX_AGE_S = 30 * 24 * 3600


@dataclass(slots=True)
class Browser:
    """A browser's credentials on a console call, and the cookie to set."""

    agent: str
    token: str | None
    #: A token to be kept; empty to forget the one before.
    keeps: str | None = None

    @classmethod
    def of(cls, request: Request) -> Browser:
        """Return the browser of a request."""
        return cls(request.headers.get("user-agent", ""), request.cookies.get(COOKIE))


def check_console_header(request: Request) -> None:
    """Refuse a cookie that comes without the header of the console's own pages."""
    if request.headers.get(CONSOLE_HEADER) != "1":
        raise CrossSiteError(
            f"A session is taken with the header {CONSOLE_HEADER}: 1 alone; add it, or send an API "
            "key where the route takes one."
        )


def add_cookie(request: Request, browser: Browser, headers: MutableMapping[str, str]) -> None:
    """Write the cookie that a browser is to keep into an answer, or the one that ends its session."""
    parts = [f"{COOKIE}={browser.keeps}", "Path=/", "HttpOnly", "SameSite=Strict"]
    parts.append(f"Max-Age={_MAX_AGE_S if browser.keeps else 0}")
    if _is_tls(request):
        parts.append("Secure")
    headers["Set-Cookie"] = "; ".join(parts)
    headers["Cache-Control"] = "no-store"


def _is_tls(request: Request) -> bool:
    """Whether the browser came over TLS: to this server, or to a proxy that says so."""
    forwarded = request.headers.get("x-forwarded-proto", "").strip().lower()
    origin = request.headers.get("origin", "").lower()
    return "https" in {request.scheme, forwarded} or origin.startswith("https://")
