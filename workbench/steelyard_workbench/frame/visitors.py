"""Visitors of the workbench: where accounts are on, every browser calls with a session of its own.

The session's token is in a cookie that no script reads, and in this process while a page is open.
Bokeh writes a page's cookies and headers into the page itself, so that these are kept out of it.
A token goes to the browser by a ticket of one use: the page, whose websocket sets no cookie, sends
it back over HTTP.
"""

from __future__ import annotations

import dataclasses
import hmac
import secrets
import time
from collections.abc import Callable
from itertools import takewhile
from typing import Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet, finalize

import panel as pn
from tornado.httputil import HTTPServerRequest
from tornado.web import HTTPError, RequestHandler

from steelyard.client import Client, ClientOptions
from steelyard.client.calls import Call
from steelyard.client.session_token import SessionToken
from steelyard.errors import AccountsOffError, NotSignedInError, SteelyardError

T = TypeVar("T")
#: The cookie of a server, which the browser sends to every port of its host.
SERVER_COOKIE = "steelyard_session"
#: Where a page sends its ticket.
PATH = "/session"
_TICKET_S, _MOST_TICKETS, _LONGEST = 60.0, 1000, 128
_MAX_AGE_DAYS = 30
_MAX_AGENT, _MAX_HOPS = 256, 8
#: Seconds for a server to say whether it has accounts, before a first page.
_ASK_S = 2.0


class VisitorClient(Client):
    """A client of one browser's session; ``on_ended`` is called from its thread once that is over."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options)
        self.on_ended: Callable[[], None] | None = None
        # What a browser that left has begun goes on to its end.
        finalize(self, self._http.close)

    def choose(self, account_id: str) -> None:
        """Call for an account, or the user's first if empty; raise ``ValueError`` for no id of one."""
        self._options = dataclasses.replace(self._options, account_id=account_id or None)

    def send(self, call: Call[T]) -> T:
        """Send a call; raise the server's refusal."""
        try:
            return super().send(call)
        except NotSignedInError:
            if self.on_ended is not None:
                self.on_ended()
            raise


class Visitors:
    """The browsers of one workbench.

    ``shared`` asks for everybody, where accounts are off or the workbench was started with a key.
    ``has_key`` says whether it was. ``port`` is the workbench's: browsers keep cookies by
    host, whatever the port.
    """

    def __init__(self, server: str, shared: Client, *, has_key: bool, port: int) -> None:
        self._server, self._shared, self._has_key = server, shared, has_key
        self.cookie = f"steelyard_workbench_{port}"
        self._tokens: WeakSet[SessionToken] = WeakSet()
        self._tickets: dict[str, tuple[str, float]] = {}
        self._has_accounts: bool | None = None

    @property
    def may_sign_in(self) -> bool:
        """Whether a browser may offer to sign in; also before that is known."""
        return not self._has_key and self._has_accounts is not False

    def client(self) -> Client:
        """Return the client for the browser whose page is being made."""
        if self._has_key or not self._asks_who():
            return self._shared
        request = getattr(pn.state.curdoc.session_context, "request", None)
        request = getattr(request, "_request", None)
        cookie = None if request is None else request.cookies.get(self.cookie)
        token = self._token_of("" if cookie is None else cookie.value)
        return VisitorClient(self._options_of(request, token))

    def stranger(self, request: HTTPServerRequest) -> Client:
        """Return the client of a browser that is not signed in yet."""
        return Client(self._options_of(request, SessionToken()))

    def _options_of(self, request: HTTPServerRequest | None, token: SessionToken) -> ClientOptions:
        agent, hops = _agent_of(request), _hops_of(request)
        return ClientOptions(self._server, session=token, agent=agent, forwarded_for=hops)

    def issue(self, token: str) -> str:
        """Return a ticket for a token that the browser is to keep; empty to forget the one it has."""
        now = time.monotonic()
        self._tickets = {ticket: entry for ticket, entry in self._tickets.items() if entry[1] > now}
        while len(self._tickets) >= _MOST_TICKETS:
            self._tickets.pop(next(iter(self._tickets)))
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = (token, now + _TICKET_S)
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return the token of a ticket, once; ``None`` of another."""
        token, until = self._tickets.pop(ticket, ("", 0.0))
        return token if until > time.monotonic() else None

    def _token_of(self, value: str) -> SessionToken:
        """Return the token that all pages of a browser share."""
        if not (value and all("!" <= letter <= "~" for letter in value)):
            return SessionToken()
        for shared in self._tokens:
            if hmac.compare_digest(shared.value.encode(), value.encode()):
                return shared
        token = SessionToken(value)
        self._tokens.add(token)
        return token

    def _asks_who(self) -> bool:
        """Whether the server has accounts; it is asked until it answered once."""
        if self._has_accounts is None:
            options = ClientOptions(self._server, session="", timeout_s=_ASK_S, max_retries=0)
            with Client(options) as asking:
                try:
                    asking.auth.session()
                except AccountsOffError:
                    self._has_accounts = False
                except NotSignedInError:
                    self._has_accounts = True
                except SteelyardError:
                    return False
        return bool(self._has_accounts)


class TicketHandler(RequestHandler):
    """Takes a ticket from the workbench's own page, and has its browser keep the token."""

    def initialize(self, visitors: Visitors) -> None:
        """Note whose browsers it is for."""
        self._visitors = visitors

    def post(self) -> None:
        """Answer 204 with the cookie."""
        if not is_own_page(self.request):
            raise HTTPError(403)
        body = self.request.body
        ticket = body.decode("ascii", "replace") if len(body) < _LONGEST else ""
        if (token := self._visitors.redeem(ticket)) is None:
            raise HTTPError(403)
        is_tls = self.request.headers.get("Origin", "").lower().startswith("https://")
        keep_cookie(self, self._visitors.cookie, token, is_tls=is_tls)
        self.set_status(204)


def is_own_page(request: HTTPServerRequest) -> bool:
    """Whether one of the workbench's own pages sends a request."""
    origin = request.headers.get("Origin", "")
    is_own = urlsplit(origin).netloc.lower() == (request.host or "").lower()
    return is_own and request.headers.get("X-Steelyard-Console") == "1"


def keep_cookie(handler: RequestHandler, name: str, token: str, *, is_tls: bool) -> None:
    """Make a browser keep a token, or forget the one it has where it is empty."""
    options: dict[str, Any] = {"httponly": True, "samesite": "Strict", "secure": is_tls}
    if token:
        handler.set_cookie(name, token, expires_days=_MAX_AGE_DAYS, **options)
    else:
        handler.clear_cookie(name, **options)
    handler.set_header("Cache-Control", "no-store")


def _agent_of(request: HTTPServerRequest | None) -> str | None:
    """Return how a browser names itself."""
    agent = "" if request is None else request.headers.get("User-Agent", "")
    letters = (letter for letter in agent if letter.isascii() and letter.isprintable())
    return "".join(letters)[:_MAX_AGENT] or None


def _hops_of(request: HTTPServerRequest | None) -> str | None:
    """Return the addresses that a request came through: those that it names, and its peer."""
    if request is None:
        return None
    addresses = ",".join([*request.headers.get_list("X-Forwarded-For"), str(request.remote_ip)])
    nearest = [hop.strip() for hop in addresses.split(",")[-_MAX_HOPS:]][::-1]
    # An unreadable address ends the list: those before it are not to be trusted.
    hops = list(takewhile(lambda hop: hop.isascii() and hop.isprintable(), nearest))
    return ", ".join(hops[::-1]) or None
