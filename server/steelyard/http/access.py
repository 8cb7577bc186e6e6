"""Access to routes: the address and the caller behind a request, its scope, and its share of the minute.

To a server every request comes from the last proxy's address, so the word of proxies that a setting
names is taken. Each adds to ``X-Forwarded-For``, at its right end, whom it got the request from; the
addresses further left may be of the caller's own making. Sanic can read such a header, but believes
every sender.

A page of another site can point its own name at this machine (DNS rebinding), and can send a form
here without asking first. The first shows in ``Host``, the second in ``Origin`` and
``Sec-Fetch-Site``, which pages cannot set: ``Origins`` checks both.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from sanic import Request

from steelyard import errors
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.http.browsers import ACCOUNT_HEADER, Browser, check_console_header
from steelyard.http.routing import Access, Route, Services
from steelyard.settings import InvalidSettingError, Settings
from steelyard.wire.hosts import host_names, host_of, is_loopback
from steelyard.wire.violations import show

#: The tag of the routes that probes and scrapers call; these are not counted.
OPERATIONS = "operations"
#: The account of callers of public routes, which is none.
NOBODY = "public"

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_FORWARDED_FOR = "x-forwarded-for"
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_PAGES = ("origin", "referer")


async def admit(request: Request, route: Route, services: Services) -> Caller:
    """Return the caller of a route that may go on."""
    address = client_address(request)
    if route.access is Access.PUBLIC:
        if OPERATIONS not in route.tags:
            await services.limits.take_public(address_group(address))
        return Caller(NOBODY, None, "inference", address)
    if route.access is Access.OPERATOR and is_from_this_machine(request):
        return Caller(NOBODY, None, "full", address)
    if route.access in {Access.SIGN_IN, Access.CONSOLE}:
        if not route.needs_no_accounts:
            _check_accounts(services)
        request.ctx.browser = Browser.of(request)
    if route.access is Access.SIGN_IN:
        await services.limits.take_public(address_group(address))
        return Caller(NOBODY, None, "inference", address)
    authorization = request.headers.get("authorization")
    if authorization is None and _is_for_session(request, route, services):
        return await _admit_session(request, route, services)
    try:
        caller = await services.accounts.authenticate(authorization, address)
    except (errors.InvalidApiKeyError, errors.MissingApiKeyError):
        # Guesses are counted like any call without a key, so that they cannot be many.
        await services.limits.take_public(address_group(address))
        raise
    request.ctx.caller = caller  # so that the log names it when the scope refuses it
    if route.access is Access.CONSOLE and not route.takes_keys:
        raise errors.ConsoleOnlyError(
            "An API key reads its account but never changes it; do this in the console, signed in."
        )
    check_scope(caller, route)
    await services.limits.take(caller)
    return caller


def _check_accounts(services: Services) -> None:
    if services.settings.accounts == "off":
        raise errors.AccountsOffError(
            "This server has no accounts: nobody signs in, and nothing is bought or charged. Start "
            "it with --accounts on (STEELYARD_ACCOUNTS=on) to use the console."
        )


def _is_for_session(request: Request, route: Route, services: Services) -> bool:
    """Whether a call without a key is to have a session.

    Where a key would do, it is a session's if it has one: without either, the refusal asks for a key.
    """
    if route.access is Access.CONSOLE and not route.takes_keys:
        return True
    if not route.session_roles or services.settings.accounts == "off":
        return False
    browser = request.ctx.browser = Browser.of(request)
    return browser.token is not None


async def _admit_session(request: Request, route: Route, services: Services) -> Caller:
    """Return the caller of a browser's cookie, and check the permissions of its role."""
    browser: Browser = request.ctx.browser
    if browser.token is not None:
        check_console_header(request)
        request.app.ctx.origins.check_console(request)
    account = request.headers.get(ACCOUNT_HEADER)
    address = client_address(request)
    try:
        caller, renewed = await services.sessions.authenticate(browser.token, account, address)
    except errors.NotSignedInError:
        await services.limits.take_public(address_group(address))
        raise
    request.ctx.caller = caller
    browser.keeps = renewed
    await services.limits.take(caller)
    session = caller.session
    if session is None or session.role not in route.session_roles:
        role = "nobody's member" if session is None or session.role is None else session.role
        raise errors.RoleForbiddenError(
            f"Your role here ({role}) does not cover {route.method} {route.path}, which is for "
            f"{_named(route.session_roles)}; ask an owner of the account."
        )
    if route.confirms and not session.is_confirmed:
        raise errors.ConfirmSignInError(
            "This needs a code or a passkey given within the last 15 minutes; sign in again with "
            "POST /v1/auth/email, and then repeat it."
        )
    if route.for_operators and not session.is_operator:
        raise errors.RoleForbiddenError(
            "This is for the operators of the server alone; one is made with steelyard account "
            "operator ADDRESS, or by the setting operators."
        )
    return caller


def _named(roles: tuple[str | None, ...]) -> str:
    """Return roles in words."""
    return " or ".join(f"{role}s" if role != "billing" else role for role in roles if role)


def check_scope(caller: Caller, route: Route) -> None:
    """Refuse a route that the caller's key does not cover.

    ``full`` covers all of them, ``read`` every GET, ``inference`` those marked so; an operator's
    route needs a ``full`` key of the account ``local``.
    """
    if route.access is Access.OPERATOR:
        if not caller.is_operator:
            raise errors.KeyScopeError(
                f"{route.path} is for whoever runs this server: call it from its own machine, or "
                f"with a key of scope full of the account {LOCAL_ACCOUNT}."
            )
        return
    may = {"full": True, "read": route.method == "GET", "inference": route.is_inference}
    if not may[caller.scope]:
        raise errors.KeyScopeError(
            f"A key of scope {caller.scope} may not call {route.method} {route.path}; use a key of "
            "a wider scope."
        )


def is_from_this_machine(request: Request) -> bool:
    """Return whether a program of this machine asks, for itself.

    It comes from a loopback address, to a loopback name; no proxy speaks for another client, and no
    page of a browser asks.
    """
    headers = request.headers
    if any(name in headers for name in (*_FORWARDED, *_PAGES)):
        return False
    return is_loopback(request.ip) and is_loopback(host_of(headers.get("host", "")))


def address_group(address: str) -> str:
    """Return the key that an address is counted under: itself, or the /64 network of an IPv6 address.

    >>> address_group("192.0.2.7"), address_group("2001:db8::1:2")
    ('192.0.2.7', '2001:db8::/64')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def client_address(request: Request) -> str:
    """Return the address of a request's sender: its peer's, or the one a trusted proxy reports."""
    address: str | None = getattr(request.ctx, "client_address", None)
    if address is None:
        proxies: TrustedProxies = request.app.ctx.proxies
        forwarded = request.headers.getall(_FORWARDED_FOR, ())
        address = request.ctx.client_address = proxies.address_behind(request.ip, forwarded)
    return address


class TrustedProxies:
    """The proxies of one server, by the setting ``trusted_proxies``; without it there are none."""

    def __init__(self, setting: str) -> None:
        self._networks = [
            _network(network.strip()) for network in setting.split(",") if network.strip()
        ]

    def address_behind(self, peer: str, forwarded: Iterable[str]) -> str:
        """Return the right-most address that is not a trusted proxy's.

        ``forwarded`` has the lines of ``X-Forwarded-For``, read from the right. The caller is the
        last address that a trusted proxy reports: reading ends at an address that is not trusted,
        and before a text that is not an address.

        >>> behind = TrustedProxies("10.0.0.0/24").address_behind
        >>> behind("10.0.0.1", ["198.51.100.1, 192.0.2.7"]), behind("192.0.2.9", ["198.51.100.1"])
        ('192.0.2.7', '192.0.2.9')
        >>> behind("10.0.0.1", ["192.0.2.7, unknown"]), behind("10.0.0.1", ["192.0.2.7, 10.0.0.2"])
        ('10.0.0.1', '192.0.2.7')
        """
        if not self._networks:
            return peer
        known = _read(peer.partition("%")[0])
        if known is None or not self._trusts(known):
            return peer
        for hop in reversed(",".join(forwarded).split(",")):
            address = _read(hop)
            if address is None:
                break
            known = address
            if not self._trusts(known):
                break
        return str(known)

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def _read(text: str) -> _Address | None:
    """Return an address, with or without a port; ``None`` for anything else.

    >>> [str(_read(one)) for one in (" 192.0.2.7:99", "[2001:db8::1]:99", "::ffff:192.0.2.7", "a")]
    ['192.0.2.7', '2001:db8::1', '192.0.2.7', 'None']
    """
    name = text.strip()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if "%" in name:  # a zone is of one machine, and may be any text
        return None
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _network(text: str) -> _Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise _refusal(text, "as 10.0.0.5 or 10.0.0.0/24") from None
    if network.prefixlen == 0:
        raise _refusal(text, "which is not everybody's")
    return network


def _refusal(text: str, needed: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"The setting trusted_proxies (STEELYARD_TRUSTED_PROXIES) has {text!r}; give the address or "
        f"network of a proxy, {needed}."
    )


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
        raise errors.MisdirectedRequestError(
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
            raise errors.CrossSiteError(
                f"A page of {show(origin) if origin else 'another site'} may not write here; call "
                "this route from a program, or add the page's host to the setting hosts "
                "(STEELYARD_HOSTS)."
            )

    def check_console(self, request: Request) -> None:
        """Refuse a cookie that a page of another origin sends, be it on another port alone."""
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        if site not in {"same-origin", "none"} or not self._is_same(request, origin):
            raise errors.CrossSiteError(
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


#: Headers of every answer: a browser must not guess its type, run it, frame it or name its referrer.
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
