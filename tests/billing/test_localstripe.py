"""Saved cards, top-ups, refunds and signed notices against ``localstripe``, a stateful server."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest
from sqlalchemy import insert

from steelyard.billing.tables import payment_methods
from steelyard.ledger.money import NANO
from steelyard.operations.write import Write
from steelyard.storage import open_state
from support.accounts.buying import OPERATOR, Till
from support.waiting import wait_until

pytest.importorskip("stripe", reason="the extra stripe is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("localstripe") is None,
        reason="localstripe is not installed: pip install 'steelyard[test-stripe]'",
    ),
]

KEY, SECRET = "sk_test_12345", "whsec_local"
#: Cards of Stripe's documents: one that pays, one that is declined when it is charged.
GOOD, DECLINED = "4242424242424242", "4000000000000341"


@pytest.fixture(scope="module")
def api() -> Iterator[httpx.Client]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "localstripe", "--port", str(port), "--from-scratch"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", auth=(KEY, "")) as client:
            wait_until(lambda: _answers(client))
            yield client
    finally:
        process.terminate()
        process.wait(10)


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/v1/balance").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def till(tmp_path, api) -> Iterator[Till]:
    from steelyard.billing.providers.stripe_payments import StripeProvider

    url = str(api.base_url)
    provider = StripeProvider(KEY, SECRET, return_url="http://home", api_url=url)
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    till = Till(state, provider)
    till.clock = time.time()
    yield till
    state.close()


def save_card(api: httpx.Client, till: Till, number: str) -> None:
    """Save a card as a paid Checkout does; ``localstripe`` has no Checkout."""
    card = {"number": number, "exp_month": 12, "exp_year": 2030, "cvc": "123"}
    form = {f"card[{name}]": str(value) for name, value in card.items()}
    method = api.post("/v1/payment_methods", data={"type": "card", **form}).json()["id"]
    customer = api.post("/v1/customers", data={"email": "owner@test"}).json()["id"]
    attached = api.post(f"/v1/payment_methods/{method}/attach", data={"customer": customer})
    assert attached.status_code == 200, attached.text
    asked = {"amount": 500, "currency": "usd", "customer": customer, "payment_method": method}
    payment = api.post("/v1/payment_intents", data=asked).json()["id"]
    saved = {
        "account_id": "local",
        "provider": "stripe",
        "payment": payment,
        "customer": customer,
    }
    till.state.write_now(lambda connection: connection.execute(insert(payment_methods), saved))


def test_a_saved_card_is_learnt_charged_and_refunded(api, till):
    save_card(api, till, GOOD)
    till.set_top_up("10", "20", "100")
    for _ in range(2):
        till.top_ups.tick()
    assert asyncio.run(till.service.billing(OPERATOR)).payment_method.last4 == "4242"
    assert till.books()["paid"] == 20 * NANO
    [bought] = till.query("SELECT id FROM purchases")
    asyncio.run(till.service.end_top_up(Write(OPERATOR)))
    assert till.service.refund(bought.id).state == "refunded"
    assert till.books()["paid"] == 0


def test_a_card_that_is_declined_ends_top_ups_after_three(api, till):
    save_card(api, till, DECLINED)
    till.set_top_up("10", "20", "100")
    for _ in range(6):
        till.top_ups.tick()
    shown = asyncio.run(till.service.billing(OPERATOR)).top_up
    assert (shown.is_on, shown.failures) == (False, 3)
    assert till.books()["paid"] == 0


def test_its_signed_notices_are_taken_once(api, till):
    heard: list[tuple[bytes, dict[str, str]]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append((body, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        where = {
            "url": f"http://127.0.0.1:{server.server_port}/",
            "secret": SECRET,
            "events[]": "payment_intent.succeeded",
        }
        assert api.post("/_config/webhooks/steelyard", data=where).status_code == 200
        save_card(api, till, GOOD)
        till.set_top_up("10", "20", "100")
        for _ in range(2):
            till.top_ups.tick()
        body, headers = wait_until(lambda: heard and heard[0])
        for _ in range(2):
            answer = asyncio.run(till.service.receive("stripe", body, headers))
            assert answer.outcome == "ignored", "it was paid by the answer to the charge"
        assert till.books()["paid"] == 20 * NANO
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
