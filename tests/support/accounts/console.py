"""A console with people in it: the real application over a state, with a clock and a mailbox."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from sqlalchemy import Connection

from steelyard.accounts.rate_limits import RateWindows, RequestLimits
from steelyard.accounts.service import AccountService
from steelyard.alarms.golden_checks import GoldenRowChecks
from steelyard.alarms.watching import Watcher
from steelyard.app.application import create_app
from steelyard.app.services import ApiServices
from steelyard.client import Client, ClientOptions
from steelyard.http.browsers import CONSOLE_HEADER, COOKIE
from steelyard.ids import new_id
from steelyard.people import limits
from steelyard.people import store as rows
from steelyard.people.account_service import OwnAccount
from steelyard.people.codes import hash_token, new_token
from steelyard.people.key_service import Keys
from steelyard.people.letters import Letter
from steelyard.people.mail_service import MailRoom
from steelyard.people.member_service import Members
from steelyard.people.member_store import find_member, insert_member
from steelyard.people.oidc_service import OidcSignIns
from steelyard.people.passkey_service import Passkeys
from steelyard.people.session_service import Sessions
from steelyard.people.sign_in_service import SignIns
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import Settings, read_settings
from steelyard.storage import State, open_state
from support.servers.server_thread import ServerThread

NOW = 1_800_000_000.0


class Clock:
    """The time that all of a console goes by."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class Console:
    """A running server, its mailbox, and the steps that tests take with both."""

    def __init__(self, folder: Path, **overrides: Any) -> None:
        given = {"accounts": "on", "requests_per_minute": 0, "public_requests_per_minute": 0}
        self.settings = read_settings({**given, "shutdown_s": 0.5, **overrides}, environ={})
        self.clock = Clock()
        self.box: list[Letter] = []
        self.state = open_state(f"sqlite:///{folder / 'state.sqlite'}")
        self.mail = MailRoom(self.state, self.settings, now=self.clock, send=self.box.append)
        self.windows = RateWindows()
        self.accounts = AccountService(
            self.state, accounts_enabled=self.settings.accounts == "on", now=self.clock
        )
        self.members = Members(self.state, self.mail, now=self.clock)
        model = SimpleNamespace(
            name="m",
            engine="none",
            runs_on="none",
            queue=SimpleNamespace(n_waiting=0),
            is_connected=False,
            hangs=True,
        )
        models: Any = SimpleNamespace(default=model, hosted=(model,), engine_statuses=dict)
        rooms: dict[type, Any] = {
            AccountService: self.accounts,
            ModelRegistry: models,
            Settings: self.settings,
            State: self.state,
            Watcher: SimpleNamespace(counts={}),
            GoldenRowChecks: SimpleNamespace(checked_at={}),
            **{type(service): service for service in self.people()},
        }
        self.services = ApiServices(
            settings=self.settings,
            accounts=self.accounts,
            models=models,
            limits=RequestLimits(self.windows, per_minute=0, public_per_minute=0),
            state=self.state,
            sessions=rooms[Sessions],
            get=rooms.__getitem__,
        )
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*listener.getsockname())
        self.thread = ServerThread(lambda: create_app(self.services), listener)

    def people(self) -> tuple[object, ...]:
        sign_ins = SignIns(self.state, self.mail, self.settings, now=self.clock)
        return (
            Keys(self.state, now=self.clock),
            OwnAccount(self.state, self.accounts, now=self.clock),
            self.members,
            Sessions(self.state, self.settings, now=self.clock),
            OidcSignIns(self.state, sign_ins, self.settings, now=self.clock),
            Passkeys(self.state, sign_ins, self.settings, now=self.clock),
            sign_ins,
        )

    def browser(self, **headers: str) -> httpx.Client:
        """Return a browser that shows the console's pages."""
        return httpx.Client(base_url=self.url, headers={"X-Steelyard-Console": "1", **headers})

    def ask(self, email: str, browser: httpx.Client) -> tuple[str, str]:
        """Ask for a code; return the challenge and the code of its letter."""
        begun = browser.post("/v1/auth/email", json={"email": email})
        assert begun.status_code == 202, begun.text
        self.mail.tick()
        return begun.json()["challenge_id"], code_of(self.box[-1])

    @contextmanager
    def sign_in(self, email: str, **headers: str) -> Iterator[httpx.Client]:
        """Open a browser with a person signed in."""
        with self.browser(**headers) as browser:
            challenge, code = self.ask(email, browser)
            body = {"challenge_id": challenge, "code": code}
            answer = browser.post("/v1/auth/email/verify", json=body)
            assert answer.status_code == 200, answer.text
            yield browser

    def account(self, name: str, **members: str) -> str:
        """Make an account with members by role, and return its id."""
        made = self.accounts.create_account(name)
        for role, email in members.items():
            self.members.invite_now(made.id, email, role)
        return made.id

    def close(self) -> None:
        self.thread.stop()
        self.windows.close()
        self.state.close()


@contextmanager
def open_console(folder: Path, **overrides: Any) -> Iterator[Console]:
    """Run a console; overrides are settings."""
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(folder, **overrides)
    try:
        yield console
    finally:
        console.close()


def code_of(letter: Letter) -> str:
    """Return the code of a letter, as a person would type it."""
    [code] = re.findall(r"^([0-9A-Z]{4}-[0-9A-Z]{4})$", letter.text(), flags=re.MULTILINE)
    return code


def begin_session(
    state: State, email: str, *, at: float, account_id: str | None = "local", role: str = "owner"
) -> str:
    """Write a session of a member of an account, as after a code, and return its token."""
    token = new_token()

    def work(connection: Connection) -> None:
        user = rows.find_user(connection, email) or rows.insert_user(connection, email, at)
        if account_id and find_member(connection, account_id, email=email) is None:
            insert_member(connection, account_id, email, role, at=at, expires_at=at, joined_at=at)
        rows.insert_session(
            connection,
            id=new_id("sess"),
            user_id=user.id,
            sha256=hash_token(token),
            network="",
            agent="",
            created_at=at,
            confirmed_at=at,
            last_used_at=at,
            idle_until=at + limits.IDLE_S,
            expires_at=at + limits.SESSION_S,
        )

    state.write_now(work)
    return token


def cookie_of(token: str) -> dict[str, str]:
    """Return the headers of a browser that shows the console's pages, signed in."""
    return {CONSOLE_HEADER: "1", "Cookie": f"{COOKIE}={token}"}


def account_with_rows(url: str, state: State, n_rows: int) -> tuple[str, str]:
    """Make an account with a dataset of so many rows; return their ids, the second empty for none."""
    id_ = AccountService(state, accounts_enabled=True).create_account(new_id("acct")).id
    email = f"{new_id('user')}@example.org"
    token = begin_session(state, email, at=time.time(), account_id=id_)
    refund = {"id": "refund", "kind": "binary", "question": "Is money asked back?"}
    row = {"decisions": [refund], "targets": {"refund": {"yes": 1.0}}}
    rows = [{**row, "context": f"Order {number} is late."} for number in range(n_rows)]
    with Client(ClientOptions(url, session=token, timeout_s=300.0)) as client:
        return id_, client.datasets.create("rows", rows).id if rows else ""
