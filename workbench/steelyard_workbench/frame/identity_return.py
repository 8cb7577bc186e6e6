"""Signing in at an identity provider: where a browser begins, and where it comes back to.

The browser that began has the ``state`` in a cookie, which no script reads and which comes along from
the provider's page; with another state nothing is taken. The answer then becomes a session, in the
cookie that every page of the workbench calls with.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlsplit

import msgspec
from tornado.web import HTTPError, RequestHandler

from steelyard.errors import SteelyardError
from steelyard.wire.decoding import decode
from steelyard_workbench.frame.visitors import Visitors, is_own_page, keep_cookie
from steelyard_workbench.kit.session import checked_address

#: Where a browser begins, and comes back to.
PATH = "/oidc"
_LIVES_S, _MOST = 600.0, 1000
_LONGEST_BODY, _LONGEST_CODE, _LONGEST_REASON = 8192, 4096, 200
_AGAIN = "Go back to the workbench and sign in again."


class _Begun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a sign-in that a page begins: the return address, and the page."""

    back: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit of the provider."""

    back: str
    address: str
    until: float


class Visits:
    """The visits that are under way, by their state."""

    def __init__(self) -> None:
        self._under_way: dict[str, Visit] = {}

    def add(self, state: str, back: str, address: str) -> None:
        """Note that a visitor went; the oldest go for it where there are many."""
        now = time.monotonic()
        self._under_way = {
            known_state: visit
            for known_state, visit in self._under_way.items()
            if visit.until > now
        }
        while len(self._under_way) >= _MOST:
            self._under_way.pop(next(iter(self._under_way)))
        self._under_way[state] = Visit(back, address, now + _LIVES_S)

    def take(self, state: str) -> Visit | None:
        """Return a visit, once."""
        visit = self._under_way.pop(state, None)
        return visit if visit is not None and visit.until > time.monotonic() else None


class IdentityHandler(RequestHandler):
    """Begins visits for the workbench's own pages, and ends them for the browser that began."""

    def initialize(self, visitors: Visitors, visits: Visits) -> None:
        """Note whose browsers it is for."""
        self._visitors, self._visits = visitors, visits
        self._cookie = state_cookie(visitors)

    async def post(self) -> None:
        """Answer with the provider's page, or with why there is none."""
        request = self.request
        if not is_own_page(request) or len(request.body) > _LONGEST_BODY:
            raise HTTPError(403)
        try:
            begun = decode(request.body, _Begun)
        except msgspec.DecodeError as error:
            raise HTTPError(400) from error
        origin = request.headers.get("Origin", "")
        if not begun.back.startswith(f"{origin}/") or not begun.back.endswith(PATH):
            raise HTTPError(403)
        self.set_header("Cache-Control", "no-store")
        try:
            with self._visitors.stranger(request) as client:
                page = await asyncio.to_thread(client.auth.start_oidc, begun.back)
        except SteelyardError as error:
            self.set_status(502)
            self.write({"message": error.message})
            return
        self._visits.add(page.state, begun.back, checked_address(begun.address))
        # Lax: it is the provider's page that leads back.
        is_tls = urlsplit(begun.back).scheme == "https"
        attributes: dict[str, Any] = {"httponly": True, "samesite": "Lax", "secure": is_tls}
        self.set_cookie(
            self._cookie, page.state, max_age=int(_LIVES_S), expires_days=None, **attributes
        )
        self.write({"authorize_url": page.authorize_url})

    async def get(self) -> None:
        """Sign in the returning user, and go on to the page they left."""
        self.set_header("Cache-Control", "no-store")
        state, code = self._argument("state"), self._argument("code")
        expected = self.get_cookie(self._cookie, "") or ""
        is_theirs = hmac.compare_digest(expected.encode(), state.encode()) and bool(state)
        visit = self._visits.take(state) if is_theirs else None
        if visit is None:
            self._tell("This sign-in was started in another browser, or too long ago.")
            return
        self.clear_cookie(self._cookie)
        if not code or len(code) > _LONGEST_CODE:
            reason = self._argument("error_description") or self._argument("error")
            self._tell(f"The identity provider refused the sign-in. {reason[:_LONGEST_REASON]}")
            return
        try:
            with self._visitors.stranger(self.request) as client:
                signed_in = await asyncio.to_thread(
                    client.auth.verify_oidc, state, code, visit.back
                )
        except SteelyardError as error:
            self._tell(error.message)
            return
        is_tls = urlsplit(visit.back).scheme == "https"
        keep_cookie(self, self._visitors.cookie, signed_in.session.token, is_tls=is_tls)
        # A page of its own, and no redirection: a cookie that is for own pages alone does not go out
        # with what another site began.
        self._page("Signed in", "", visit.address, is_led=True)

    def _argument(self, name: str) -> str:
        return self.get_query_argument(name, "", strip=True) or ""

    def _tell(self, why: str) -> None:
        self.set_status(403)
        self._page("Not signed in", why, "")

    def _page(self, title: str, why: str, address: str, *, is_led: bool = False) -> None:
        """Write a page that leads to the workbench."""
        where = escape(f"./?{address}" if address else "./")
        led = f'<meta http-equiv="refresh" content="0; url={where}">' if is_led else ""
        self.write(
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">{led}'
            f"<title>{title}</title></head><body><h1>{title}</h1><p>{escape(why)}</p>"
            f'<p><a href="{where}">{"Go on" if is_led else _AGAIN}</a></p></body></html>'
        )


def state_cookie(visitors: Visitors) -> str:
    """Return the name of the cookie that a browser has while it is at the provider."""
    return f"{visitors.cookie}_state"
