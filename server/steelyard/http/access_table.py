"""The callers that routes of the console allow, as a table and as a page of the documents.

A test calls every route as everybody and holds the answers to this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, get_args

from steelyard.http.routing import Access, Route

#: Who calls. A role is that of a session whose code was given lately; ``unconfirmed`` is an owner's
#: whose code is older than 15 minutes, ``elsewhere`` that of an owner of another account, which the
#: call does not name, and ``cross-site`` an owner's that a page of another site sends.
Who = Literal[
    "nobody",
    "owner",
    "developer",
    "billing",
    "reviewer",
    "no account",
    "operator",
    "unconfirmed",
    "elsewhere",
    "cross-site",
    "full",
    "inference",
    "read",
]
WHO: tuple[Who, ...] = get_args(Who)
#: Whose session it is where it is not a role's own.
_ROLES: dict[Who, str | None] = {"no account": None, "operator": None, "unconfirmed": "owner"}
YES = "yes"


def console_routes(routes: Iterable[Route]) -> list[Route]:
    """Return the routes of the console, by their paths."""
    console = (route for route in routes if route.access in {Access.SIGN_IN, Access.CONSOLE})
    return sorted(console, key=lambda route: (route.path, route.method))


def answer(route: Route, who: Who) -> str:
    """Return ``yes``, or the code of the refusal, of a call to a route of the console."""
    if route.access is Access.SIGN_IN:
        # A user who signs in has no session yet, and credentials beside the call open nothing.
        return "cross_site_request" if who == "cross-site" and route.is_write else YES
    if who == "nobody":
        return "missing_api_key" if route.takes_keys else "not_signed_in"
    if who == "cross-site":
        return "cross_site_request"
    if who == "elsewhere":
        return "not_found"
    if who in {"full", "inference", "read"}:
        return _answer_to_key(route, who)
    return _answer_to_session(route, who)


def _answer_to_key(route: Route, scope: Who) -> str:
    if not route.takes_keys:
        return "console_only"
    may = {"full": True, "read": route.method == "GET", "inference": route.is_inference}
    return YES if may[scope] else "key_scope"


def _answer_to_session(route: Route, who: Who) -> str:
    if route.for_operators and who != "operator":
        return "confirm_sign_in" if route.confirms and who == "unconfirmed" else "role_forbidden"
    if _ROLES.get(who, who) not in route.roles:
        return "role_forbidden"
    if route.confirms and who == "unconfirmed":
        return "confirm_sign_in"
    return YES


_HEAD = """\
# Who may call the console

Made of the routes by `python scripts/access_table.py`; a test calls every route as everybody and holds
the answers to it.

- A role is that of the member whose session comes with the call; a user without an account, such as an operator, has
  none. `yes` under *code* means that a code, or a passkey, must have been given within the last 15 minutes (403 `confirm_sign_in`
  else).
- Whoever has neither session nor key gets 401: `missing_api_key` where a key would do, `not_signed_in` elsewhere. A role
  that is not named gets 403 `role_forbidden`, a key 403 `console_only`, or `key_scope` where another scope would do.
- Whoever names another account (`X-Steelyard-Account`) without a part in it gets 404 `not_found` from every route, and a
  cookie that a page of another site sends 403 `cross_site_request`. Things of other accounts are 404, as things that nobody has.
- `GET /v1/auth`, `/v1/auth/email`, `/v1/auth/oidc` and `/v1/auth/passkey` are for whoever is not signed in yet; how often
  is limited.

"""
_COLUMNS: tuple[tuple[str, Callable[[Route], bool]], ...] = (
    *((who, lambda route, who=who: answer(route, who) == YES) for who in WHO[1:7]),
    ("code", lambda route: route.confirms),
    *((f"`{who}` key", lambda route, who=who: answer(route, who) == YES) for who in WHO[-3:]),
)


def page(routes: Iterable[Route]) -> str:
    """Return the page of the documents."""
    names = ["route", *(name for name, _ in _COLUMNS)]
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for route in console_routes(routes):
        cells = [f"`{route.method} {route.path}`"]
        cells += ["yes" if is_so(route) else "" for _, is_so in _COLUMNS]
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
    return _HEAD + "\n".join(lines) + "\n"
