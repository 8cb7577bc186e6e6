"""The session of a user that a client calls with: sent as a browser's cookie is, and kept as one."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie

import httpx

_COOKIE = "steelyard_session"


class SessionToken:
    """The token of a session, which a server may replace with any answer, or end.

    Clients that share one go on with tokens that the others received.

    ``value``: the token; empty before signing in.
    """

    def __init__(self, value: str = "") -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'signed in' if self.value else 'signed out'})"

    def headers(self) -> dict[str, str]:
        """Return the headers of every call."""
        headers = {"X-Steelyard-Console": "1"}
        if self.value:
            headers["Cookie"] = f"{_COOKIE}={self.value}"
        return headers

    def keep(self, response: httpx.Response) -> None:
        """Take the token that an answer has, where it has one."""
        for header in response.headers.get_list("set-cookie"):
            try:
                cookie = SimpleCookie(header).get(_COOKIE)
            except CookieError:
                continue
            if cookie is not None:
                self.value = cookie.value
