"""kill -9 while credit is bought, noticed, topped up and refunded, and others spend it.

The ledger sums to zero, nothing is credited twice, and nothing that was paid is lost.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection

from faults.audit import audit
from faults.processes import MODEL, ServeProcess, serve_process
from faults.traffic import clients, stop
from steelyard.accounts.service import AccountService
from steelyard.billing import applying
from steelyard.billing.providers.manual import ManualProvider
from steelyard.billing.service import PurchaseService
from steelyard.ledger.money import NANO
from steelyard.storage import open_state
from support.accounts.console import begin_session, cookie_of
from support.waiting import let_a_moment_pass, wait_until

pytest.importorskip("stripe", reason="the extra stripe is not installed")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    # One kill of each in every run, and as many as it takes to meet rare moments in the long one.
    pytest.mark.parametrize(
        "kills",
        [
            pytest.param(1, marks=pytest.mark.timeout(300)),
            pytest.param(30, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
        ],
    ),
]

SEED = 20261124
SECRET = "whsec_killed"
PRICED = {"STEELYARD_ACCOUNTS": "on", "STEELYARD_PRICES": f"{MODEL}=7"}
STRIPE = {
    "STEELYARD_PAYMENTS": "stripe",
    "STEELYARD_STRIPE_KEY": "sk_test_killed",
    "STEELYARD_STRIPE_EVENTS_SECRET": SECRET,
}
#: Seconds for a request to a server that dies again and again: on a busy machine it is seldom up for long.
ANSWERED_WITHIN_S = 240
TOP_UP = {"threshold_usd": "10000", "amount_usd": "5", "monthly_cap_usd": "1000000"}


class Office:
    """A home whose account ``local`` buys, and spends with every client."""

    def __init__(self, home: Path, server: ServeProcess) -> None:
        self.home = home
        self.server = server
        with self.state() as state:
            accounts = AccountService(state, accounts_enabled=True)
            self.secret = accounts.create_key(account="local").secret
            accounts.add_credit("local", 1000 * NANO)
            token = begin_session(state, "mia@example.org", at=time.time())
        self.signed_in = cookie_of(token)

    @contextmanager
    def state(self) -> Iterator[Any]:
        opened = open_state(f"sqlite:///{self.home / 'state.sqlite'}")
        try:
            yield opened
        finally:
            opened.close()

    def send(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Repeat a request until the server, which is killed now and then, has answered it."""
        headers = {**self.signed_in, **given.pop("headers", {})}

        def send() -> list[httpx.Response]:
            url = f"{self.server.url}{path}"
            with suppress(httpx.TransportError):
                answer = httpx.request(method, url, headers=headers, timeout=10, **given)
                return [answer] if answer.status_code < 500 else []
            return []

        return wait_until(send, ANSWERED_WITHIN_S)[0]

    def buy(self, key: str) -> str:
        answer = self.send(
            "POST",
            "/v1/billing/purchases",
            json={"amount_usd": "5"},
            headers={"Idempotency-Key": key},
        )
        assert answer.status_code == 200, answer.text
        made: str = answer.json()["purchase"]["id"]
        return made

    def notice(self, event: str, kind: str, purchase: str, **told: Any) -> None:
        """Send a signed event of Stripe's twice at once, each until it is answered."""
        with ThreadPoolExecutor(2) as pool:
            sent = [pool.submit(self._notice, event, kind, purchase, **told) for _ in range(2)]
        for one in sent:
            one.result()

    def _notice(self, event: str, kind: str, purchase: str, **told: Any) -> None:
        said = {
            "amount_total": 500,
            "currency": "usd",
            "payment_status": "paid",
            "payment_intent": f"pi_{purchase}",
            "metadata": {"purchase_id": purchase, "account_id": "local"},
            **told,
        }
        body = json.dumps({"id": event, "type": kind, "data": {"object": said}}).encode()
        now = int(time.time())
        digest = hmac.new(SECRET.encode(), b"%d." % now + body, hashlib.sha256).hexdigest()
        answer = self.send(
            "POST",
            "/v1/billing/providers/stripe/events",
            content=body,
            headers={"Stripe-Signature": f"t={now},v1={digest}"},
        )
        assert answer.status_code == 200, answer.text

    def begin_for_stripe(self, n: int) -> list[str]:
        """Write purchases as they are once Checkout has begun."""
        ids = [f"pur_{number:04}" for number in range(n)]

        def work(connection: Connection) -> None:
            for purchase_id in ids:
                applying.begin(
                    connection,
                    purchase_id,
                    account_id="local",
                    provider="stripe",
                    amount_nano=5 * NANO,
                    now=time.time(),
                    lifetime_s=1e6,
                )

        with self.state() as state:
            state.write_now(work)
        return ids


def killed(
    tmp_path: Path,
    kills: int,
    variables: dict[str, str],
    prepare: Callable[[Office], Any],
    work: Any,
) -> Any:
    """Do work in a thread while calls are paid for and the server dies again and again; then audit."""
    moments = random.Random(SEED)
    home = tmp_path / "home"
    with serve_process(home, **PRICED, **variables) as server:
        office = Office(home, server)
        prepared = prepare(office)
        server.start()
        failures: list[BaseException] = []
        over = threading.Event()

        def run() -> None:
            try:
                work(office, prepared, over)
            except BaseException as error:  # noqa: BLE001  shown by the test's own thread
                failures.append(error)

        thread = threading.Thread(target=run)
        with clients(server.url, office.secret, seed=SEED) as running:
            thread.start()
            for _ in range(kills):
                let_a_moment_pass(moments, 0.02, 0.4)
                server.kill()
                server.start()
            over.set()
            thread.join(ANSWERED_WITHIN_S)
            assert not thread.is_alive()
            stop(running)
            for client in running:
                client.settle_unheard()
        server.stop()
        assert not failures, failures
        audit(server.state)
        return check(server.state)


def check(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Check every purchase against its postings."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        purchases = [dict(row) for row in connection.execute("SELECT * FROM purchases")]
        posted: dict[str, dict[str, int]] = {}
        entries = connection.execute("SELECT operation_id, book, amount_nano FROM ledger_entries")
        for entry in entries:
            books = posted.setdefault(entry["operation_id"], {})
            books[entry["book"]] = books.get(entry["book"], 0) + entry["amount_nano"]
    expected = {
        "pending": ("purchases_pending",),
        "paid": ("wallet",),  # as the book ``paid`` is stored
        "refunded": ("refunds",),
        "disputed": ("refunds",),
    }
    by_state: dict[str, list[dict[str, Any]]] = {}
    for purchase in purchases:
        by_state.setdefault(purchase["state"], []).append(purchase)
        books = {book: n for book, n in posted[purchase["operation_id"]].items() if n}
        amount = purchase["amount_nano"]
        wanted = {"funding": -amount}
        for book in expected[purchase["state"]]:
            wanted[book] = amount
        assert books == wanted, purchase
    print({state: len(found) for state, found in by_state.items()})  # noqa: T201  what was done
    return by_state


def test_purchases_of_a_killed_server_are_made_once(tmp_path: Path, kills: int) -> None:
    bought: dict[str, str] = {}

    def work(office: Office, _: object, over: threading.Event) -> None:
        while not over.is_set():
            key = f"buy-{len(bought)}"
            bought[key] = office.buy(key)
            assert office.buy(key) == bought[key]

    found = killed(tmp_path, kills, {}, lambda office: None, work)
    assert {row["idempotency_key"]: row["id"] for row in found["pending"]} == bought


@pytest.mark.slow  # in every run the refunds have such notices
def test_notices_to_a_killed_server_count_once(tmp_path: Path, kills: int) -> None:
    told: set[str] = set()

    def work(office: Office, ids: list[str], over: threading.Event) -> None:
        for purchase in ids:
            if over.is_set() and len(told) >= min(kills, 10):
                return
            office.notice(f"evt_{purchase}", "checkout.session.completed", purchase)
            told.add(purchase)

    found = killed(
        tmp_path, kills, STRIPE, lambda office: office.begin_for_stripe(100 * kills), work
    )
    assert {row["id"] for row in found["paid"]} >= told


@pytest.mark.slow
def test_top_ups_of_a_killed_server_are_one_at_a_time(tmp_path: Path, kills: int) -> None:
    confirmed: set[str] = set()

    def work(office: Office, _: object, over: threading.Event) -> None:
        assert office.send("PUT", "/v1/billing/top-up", json=TOP_UP).status_code == 200
        while not (over.is_set() and confirmed):
            shown = office.send("GET", "/v1/billing").json()
            under_way = shown["top_up"]["under_way"]
            assert shown["pending_usd"] in {"0", "5"}, "one at most"
            if under_way is None:
                over.wait(0.02)
                continue
            with office.state() as state:
                money = PurchaseService(state, ManualProvider(), accounts_enabled=True)
                for _ in range(2):
                    money.confirm(under_way)
            confirmed.add(under_way)

    found = killed(tmp_path, kills, {}, lambda office: None, work)
    assert {row["id"] for row in found["paid"]} == confirmed
    assert len(found.get("pending", [])) <= 1
    assert confirmed


@pytest.mark.slow
def test_refunds_by_a_killed_server_count_once(tmp_path: Path, kills: int) -> None:
    told: set[str] = set()

    def work(office: Office, ids: list[str], over: threading.Event) -> None:
        for purchase in ids:
            if over.is_set() and len(told) >= min(kills, 10):
                return
            # The refund overtakes the payment in half of them.
            events = [("paid", "checkout.session.completed"), ("back", "charge.refunded")]
            for name, kind in events if len(told) % 2 else reversed(events):
                office.notice(f"{name}_{purchase}", kind, purchase, amount_refunded=500)
            told.add(purchase)

    found = killed(
        tmp_path, kills, STRIPE, lambda office: office.begin_for_stripe(100 * kills), work
    )
    assert {row["id"] for row in found["refunded"]} >= told
