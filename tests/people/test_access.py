"""Every route of the console called by everybody: answered or refused as the table of access says."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from typing import Any

import httpx
import pytest

from steelyard.app.application import ROUTES
from steelyard.http.access_table import WHO, YES, Who, answer, console_routes, page
from steelyard.http.routing import Access, Route
from steelyard.ids import new_id
from steelyard.people import limits
from steelyard.people.member_service import Members
from support.accounts.console import begin_session, cookie_of
from support.servers.live_server import live_server
from support.tree.repository import ROOT

pytestmark = pytest.mark.usefixtures("every_response_is_checked")
CONSOLE = console_routes(ROUTES)
#: What is refused for who calls, and not for what the call says.
REFUSALS = {
    "missing_api_key",
    "invalid_api_key",
    "not_signed_in",
    "role_forbidden",
    "confirm_sign_in",
    "console_only",
    "key_scope",
    "cross_site_request",
}
SECRET = "The Quillfeather account"


class World:
    """A server with an account of everybody's and another one."""

    def __init__(self, server: Any) -> None:
        self.server = server
        accounts = server.services.accounts
        self.acme = accounts.create_account(SECRET).id
        self.other = accounts.create_account("other").id
        self.keys = {
            scope: accounts.create_key(account=self.acme, scope=scope, name=SECRET)
            for scope in ("full", "inference", "read")
        }
        self.http = httpx.Client(base_url=server.url, timeout=30)
        self.state = server.services.state

    def headers_of(self, who: Who) -> dict[str, str]:
        """Return the headers of a call; each has a session of its own, since calls may end it."""
        if who == "nobody":
            return {}
        if who in self.keys:
            return {"Authorization": f"Bearer {self.keys[who].secret}", "X-Steelyard-Console": "1"}
        at, account, role = time.time(), self.acme, who
        if who == "unconfirmed":
            at -= limits.CONFIRMED_S
        if who == "elsewhere":
            account = self.other
        if who in {"elsewhere", "cross-site", "unconfirmed"}:
            role = "owner"
        is_member = who not in {"operator", "no account"}
        name = who.replace(" ", "-")
        token = begin_session(
            self.state,
            f"{name}@example.org",
            at=at,
            account_id=account if is_member else None,
            role=role,
        )
        if who == "operator":
            self.server.services.get(Members).make_operator(f"{name}@example.org")
        headers = cookie_of(token)
        if who == "elsewhere":
            headers["X-Steelyard-Account"] = self.acme
        if who == "cross-site":
            headers |= {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
        return headers

    def call(self, route: Route, headers: dict[str, str], thing: str = "thing") -> httpx.Response:
        path = re.sub(r"{\w+}", thing, route.path)
        body = {"json": {}} if route.request is not None else {}
        return self.http.request(route.method, path, headers=headers, **body)


@pytest.fixture(scope="module")
def world():
    with live_server(accounts="on") as server:
        found = World(server)
        with found.http:
            yield found


def told(response: httpx.Response) -> str:
    """Return the code of a refusal of who calls, ``not_found`` where there is nothing; else yes."""
    assert response.status_code < 500, response.text
    if response.status_code < 400:
        return YES
    code: str = response.json()["error"]["code"]
    return code if code in REFUSALS or code == "not_found" else YES


@pytest.mark.parametrize("who", WHO)
def test_every_route_answers_everybody_as_the_table_says(world, who):
    wrong = {}
    for route in CONSOLE:
        found, expected = told(world.call(route, world.headers_of(who))), answer(route, who)
        # A path to a thing that nobody has is not found by whoever may ask for it.
        if found != expected and not (
            found == "not_found" and expected == YES and "{" in route.path
        ):
            wrong[f"{route.method} {route.path}"] = (found, expected)
    assert wrong == {}


def test_a_cookie_without_the_header_of_own_pages_opens_nothing(world):
    headers = world.headers_of("owner")
    del headers["X-Steelyard-Console"]
    for route in CONSOLE:
        if route.access is Access.CONSOLE:
            assert told(world.call(route, headers)) == "cross_site_request", route


def test_things_of_another_account_are_not_found(world):
    """Neither a session nor a key of another account reads or names the first's things."""
    owner = world.headers_of("owner")
    bought = world.http.post("/v1/billing/purchases", json={"amount_usd": "5"}, headers=owner)
    members = world.http.get("/v1/account/members", headers=owner).json()["data"]
    sessions = world.http.get("/v1/account/sessions", headers=owner).json()["data"]
    things = defaultdict(
        lambda: "thing",
        {
            "key": world.keys["full"].key.id,
            "member": members[0]["id"],
            "session": sessions[0]["id"],
            "purchase": bought.json()["purchase"]["id"],
        },
    )
    secret = world.server.services.accounts.create_key(account=world.other).secret
    session = begin_session(world.state, "kim@other.org", at=time.time(), account_id=world.other)
    bodies = {
        "PATCH /v1/account/keys/{key}": {"name": "taken"},
        "PATCH /v1/account/members/{member}": {"role": "owner"},
    }
    for headers in (cookie_of(session), {"Authorization": f"Bearer {secret}"}):
        for route in CONSOLE:
            parameters = re.findall(r"{(\w+)}", route.path)
            refusals = []
            for thing in (things[(parameters or [""])[0]], new_id("thing")):
                path = re.sub(r"{\w+}", thing, route.path)
                body = bodies.get(f"{route.method} {route.path}")
                sent = {} if body is None else {"json": body}
                if not parameters and route.method != "GET":
                    continue
                found = world.http.request(route.method, path, headers=headers, **sent)
                assert SECRET not in found.text, route
                assert things["member"] not in found.text.replace(path, ""), route
                if parameters:
                    error = found.json()["error"]
                    refusals.append(
                        (found.status_code, error["code"], error["message"].replace(thing, ""))
                    )
            assert len(set(refusals)) <= 1, route
            assert not refusals or refusals[0][0] in {403, 404}, route


def test_the_page_of_the_documents_agrees_with_the_routes():
    committed = (ROOT / "docs" / "operators" / "access-table.md").read_text(encoding="utf-8")
    assert committed == page(ROUTES), "run: python scripts/access_table.py"
