"""Stripe's events and Checkout: signatures, the content of each event, and the requests."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from steelyard import errors
from steelyard.billing.notices import Ask, Card
from steelyard.ledger.money import NANO
from steelyard.storage import open_state
from support.accounts.buying import Till

pytest.importorskip("stripe", reason="the extra stripe is not installed")

from steelyard.billing.providers.stripe_payments import StripeProvider

SECRET = "whsec_test"
ASK = Ask(purchase_id="pur_1", account_id="acct_1", amount_nano=20 * NANO)
METADATA = {"purchase_id": "pur_1", "account_id": "acct_1"}


def signed(event: object, *, secret: str = SECRET, at: float | None = None) -> tuple[bytes, dict]:
    return signed_bytes(json.dumps(event).encode(), secret=secret, at=at)


def signed_bytes(
    body: bytes, *, secret: str = SECRET, at: float | None = None
) -> tuple[bytes, dict]:
    when = int(time.time() if at is None else at)
    digest = hmac.new(secret.encode(), b"%d." % when + body, hashlib.sha256).hexdigest()
    return body, {"stripe-signature": f"t={when},v1={digest}"}


def event(kind: str, **told: object) -> dict[str, object]:
    return {"id": "evt_1", "type": kind, "data": {"object": {"currency": "usd", **told}}}


@pytest.fixture(scope="module")
def provider() -> StripeProvider:
    return StripeProvider("sk_test_1", SECRET, return_url="http://127.0.0.1:8420")


SESSION = {
    "amount_total": 2000,
    "metadata": METADATA,
    "payment_intent": "pi_1",
    "customer": "cus_1",
}
TOP_UP = {"id": "pi_1", "amount": 2000, "metadata": {**METADATA, "kind": "top_up"}}
CHARGE = {"payment_intent": "pi_1", "amount": 2000, "amount_refunded": 700}


@pytest.mark.parametrize(
    ("kind", "told", "said"),
    [
        ("checkout.session.completed", {**SESSION, "payment_status": "paid"}, ("paid", 20)),
        ("checkout.session.completed", {**SESSION, "payment_status": "unpaid"}, None),
        ("checkout.session.async_payment_succeeded", SESSION, ("paid", 20)),
        ("checkout.session.async_payment_failed", SESSION, ("failed", 20)),
        ("checkout.session.expired", {**SESSION, "payment_intent": None}, ("expired", 20)),
        ("checkout.session.expired", {**SESSION, "metadata": {}}, None),
        ("payment_intent.succeeded", TOP_UP, ("paid", 20)),
        ("payment_intent.payment_failed", TOP_UP, ("failed", 20)),
        ("payment_intent.payment_failed", {**TOP_UP, "metadata": METADATA}, None),
        ("charge.refunded", CHARGE, ("refunded", 7)),
        ("charge.dispute.created", CHARGE, ("disputed", 20)),
        ("customer.created", {}, None),
    ],
)
def test_events_are_read(provider, kind, told, said):
    notice = provider.read(*signed(event(kind, **told))).notice
    assert (notice and (notice.kind, notice.amount_nano // NANO)) == said


@pytest.mark.parametrize("forged", ["secret", "old", "body", "none", "garbage"])
def test_a_forged_event_is_refused(provider, forged):
    told = event("payment_intent.succeeded", **TOP_UP)
    body, headers = signed(
        told,
        secret="whsec_other" if forged == "secret" else SECRET,
        at=time.time() - 3600 if forged == "old" else None,
    )
    if forged == "body":
        body = body.replace(b"2000", b"9000")
    if forged in {"none", "garbage"}:
        headers = {} if forged == "none" else {"stripe-signature": "t=x,v1=\xff"}
    with pytest.raises(errors.InvalidSignatureError):
        provider.read(body, headers)


class Api(BaseHTTPRequestHandler):
    """Answers as Stripe's API, with a test's values; records the requests."""

    asked: list[tuple[str, dict[str, str], str | None]]
    headers_of: list[dict[str, str]]
    answers: dict[str, tuple[int, dict]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        form = dict(urllib.parse.parse_qsl(body))
        self.asked.append((self.path, form, self.headers["Idempotency-Key"]))
        self.headers_of.append(dict(self.headers))
        status, answer = self.answers[self.path]
        sent = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def api() -> Iterator[tuple[StripeProvider, type[Api]]]:
    handler = type("Handler", (Api,), {"asked": [], "answers": {}, "headers_of": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    yield StripeProvider("sk_test_1", SECRET, return_url="http://home", api_url=url), handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_checkout_is_asked_for_once_for_a_purchase(api):
    provider, handler = api
    handler.answers["/v1/checkout/sessions"] = (
        200,
        {"id": "cs_1", "object": "checkout.session", "url": "https://checkout.test/cs_1"},
    )
    begun = provider.begin(ASK)
    assert (begun.reference, begun.checkout_url) == ("cs_1", "https://checkout.test/cs_1")
    [(_, form, key)] = handler.asked
    assert key == "begin-pur_1"
    assert form["client_reference_id"] == form["metadata[purchase_id]"] == "pur_1"
    assert form["line_items[0][price_data][unit_amount]"] == "2000"
    assert form["payment_intent_data[setup_future_usage]"] == "off_session"


def test_a_declined_card_is_a_failed_purchase_and_an_error_is_not(api):
    provider, handler = api
    card = Card(customer="cus_1", method="pm_1", brand="visa", last4="4242")
    handler.answers["/v1/payment_intents"] = (
        402,
        {"error": {"type": "card_error", "code": "card_declined", "message": "Declined."}},
    )
    assert provider.charge(ASK, card).notice.kind == "failed"
    handler.answers["/v1/payment_intents"] = (400, {"error": {"type": "invalid_request_error"}})
    with pytest.raises(errors.PaymentProviderError):
        provider.charge(ASK, card)
    assert {key for _, _, key in handler.asked} == {"charge-pur_1"}
    # The library's own report on this machine and on the calls before.
    for headers in handler.headers_of:
        assert "X-Stripe-Client-Telemetry" not in headers
        agent = json.loads(headers["X-Stripe-Client-User-Agent"])
        assert agent.keys() <= {"bindings_version", "httplib", "lang", "lang_version"}


def test_events_count_once_and_forged_ones_never(tmp_path, provider):
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    try:
        till = Till(state, provider)
        told = event("checkout.session.completed", **SESSION, payment_status="paid")
        body, headers = signed(told)
        for _ in range(2):
            answer = asyncio.run(till.service.receive("stripe", body, headers))
            assert answer.outcome == "parked", "it names no purchase of this state"
        assert [one.id for one in till.service.parked()] == ["evt_1"]
        with pytest.raises(errors.InvalidSignatureError):
            asyncio.run(till.service.receive("stripe", body + b" ", headers))
        assert len(till.query("SELECT id FROM provider_events")) == 1
    finally:
        state.close()


@pytest.mark.parametrize(
    ("session", "outcome", "paid"), [("cs_1", "applied", 20), ("cs_other", "parked", 0)]
)
@pytest.mark.parametrize("kind", ["completed", "async_payment_succeeded"])
def test_only_the_session_of_a_purchase_pays_it(tmp_path, api, kind, session, outcome, paid):
    provider, handler = api
    handler.answers["/v1/checkout/sessions"] = (
        200,
        {"id": "cs_1", "object": "checkout.session", "url": "https://checkout.test/cs_1"},
    )
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    try:
        till = Till(state, provider)
        metadata = {"purchase_id": till.buy().id, "account_id": "local"}
        content = {**SESSION, "id": session, "metadata": metadata, "payment_status": "paid"}
        body, headers = signed(event(f"checkout.session.{kind}", **content))
        answer = asyncio.run(till.service.receive("stripe", body, headers))
        assert (answer.outcome, till.books()["paid"]) == (outcome, paid * NANO)
        assert ["cs_other" in parked.reason for parked in till.service.parked()] == (
            [True] if outcome == "parked" else []
        )
    finally:
        state.close()


@pytest.mark.parametrize("amount", ["2000", 2000.5, None, True, -1, 10**30])
def test_an_amount_that_is_none_is_parked(tmp_path, provider, amount):
    told = {**SESSION, "payment_status": "paid", "amount_total": amount}
    state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
    try:
        till = Till(state, provider)
        body, headers = signed(event("checkout.session.completed", **told))
        assert asyncio.run(till.service.receive("stripe", body, headers)).outcome == "parked"
        assert "amount_total" in till.service.parked()[0].reason
    finally:
        state.close()


@pytest.mark.parametrize(
    "wrong",
    [
        "not JSON",
        [],
        {"id": "evt_1"},
        {"id": "evt_1", "type": "charge.refunded", "data": {"object": []}},
    ],
)
def test_a_signed_event_that_cannot_be_read_is_refused_as_that(provider, wrong):
    body, headers = signed(wrong)
    if wrong == "not JSON":
        body, headers = signed_bytes(b"{")
    with pytest.raises(errors.InvalidRequestError, match="signed"):
        provider.read(body, headers)


@pytest.mark.parametrize("away_s", [-3600, 3600])
def test_an_events_time_is_near_this_servers(provider, away_s):
    body, headers = signed(event("checkout.session.expired"), at=time.time() + away_s)
    with pytest.raises(errors.InvalidSignatureError, match="five minutes"):
        provider.read(body, headers)
