"""``/v1/billing`` over HTTP: changed by who is signed in, read with keys too."""

from __future__ import annotations

import codecs
import csv
import io
import time
from decimal import Decimal

import httpx
import pytest

from steelyard.billing.service import PurchaseService
from steelyard.client import Client, ClientOptions
from support.accounts.console import begin_session, cookie_of
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def server():
    with live_server(accounts="on") as running:
        yield running


@pytest.fixture(scope="module")
def http(server):
    token = begin_session(server.services.state, "mia@example.org", at=time.time(), role="billing")
    with httpx.Client(base_url=server.url, headers=cookie_of(token)) as client:
        yield client


@pytest.fixture(scope="module")
def paid(server, http):
    made = http.post("/v1/billing/purchases", json={"amount_usd": "25.50"}).json()
    assert made["purchase"]["state"] == "pending"
    assert http.get("/v1/billing").json()["pending_usd"] == "25.5"
    assert http.get("/v1/billing").json()["available_usd"] == "0"
    server.services.get(PurchaseService).confirm(made["purchase"]["id"])
    return made["purchase"]["id"]


def test_without_accounts_nothing_is_bought(client):
    for method, path in (("GET", "/v1/billing"), ("DELETE", "/v1/billing/top-up")):
        assert_canonical_error(client.request(method, path), 503, "accounts_off")


def test_a_paid_purchase_is_credit_and_has_a_receipt(http, paid):
    billing = http.get("/v1/billing").json()
    assert (billing["available_usd"], billing["paid_usd"]) == ("25.5", "25.5")
    assert http.get("/v1/account").json()["wallet"]["available_usd"] == "25.5"
    assert http.get("/v1/account/audit").status_code == 403
    assert http.get(f"/v1/billing/purchases/{paid}").json()["state"] == "paid"
    assert [one["id"] for one in http.get("/v1/billing/purchases").json()["data"]] == [paid]
    receipt = http.get(f"/v1/billing/purchases/{paid}/receipt")
    assert receipt.headers["content-type"].startswith("text/html")
    assert paid in receipt.text
    assert "25.5 USD" in receipt.text


def test_the_ledger_is_paged_and_sent_as_csv(http, paid):
    lines, cursor = [], None
    while True:
        given = {"limit": 1} | ({"cursor": cursor} if cursor else {})
        page = http.get("/v1/billing/transactions", params=given).json()
        lines += page["data"]
        cursor = page["next_cursor"]
        if not page["has_more"]:
            break
    assert [line["book"] for line in lines] == [
        "paid",
        "purchases_pending",
        "purchases_pending",
        "funding",
    ]
    assert {line["route"] for line in lines} == {"purchase"}
    sent = http.get("/v1/billing/transactions", params={"format": "csv"})
    assert sent.headers["content-type"].startswith("text/csv")
    assert sent.content.startswith(codecs.BOM_UTF8), "as every CSV of this server"
    told = list(csv.DictReader(io.StringIO(sent.content.decode("utf-8-sig"))))
    assert [row["amount_usd"] for row in told] == [line["amount_usd"] for line in lines]
    refused = http.get("/v1/billing/transactions", params={"cursor": "x"})
    assert_canonical_error(refused, 422, "invalid_request", path=["query", "cursor"])


def test_changes_of_money_are_noted_with_their_author(server, paid):
    token = begin_session(server.services.state, "bo@example.org", at=time.time())
    with httpx.Client(base_url=server.url, headers=cookie_of(token)) as owner:
        [entry] = [
            one
            for one in owner.get("/v1/account/audit").json()["data"]
            if one["action"] == "purchase.begun"
        ]
    assert (entry["email"], entry["subject"]) == ("mia@example.org", f"{paid} 25.5 USD")


def test_a_customers_key_reads_and_changes_nothing(server, http, paid):
    account = server.services.accounts.create_account("customer").id
    secret = server.services.accounts.create_key(account=account).secret
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=server.url, headers=headers) as other:
        assert other.get("/v1/billing").json()["balance_usd"] == "0"
        assert other.get("/v1/billing/purchases").json()["data"] == []
        for rest in ("", "/receipt"):
            refused = other.get(f"/v1/billing/purchases/{paid}{rest}")
            assert_canonical_error(refused, 404, "not_found")
        for method, path, body in (
            ("POST", "purchases", {"amount_usd": "5"}),
            ("PUT", "top-up", {"threshold_usd": "1", "amount_usd": "5", "monthly_cap_usd": "5"}),
            ("DELETE", "top-up", None),
            ("POST", "referral/redeem", {"code": "ABC"}),
        ):
            refused = other.request(method, f"/v1/billing/{path}", json=body)
            assert_canonical_error(refused, 403, "console_only")


def test_top_ups_are_set_and_ended(http):
    given = {"threshold_usd": "0", "amount_usd": "20", "monthly_cap_usd": "100"}
    assert http.put("/v1/billing/top-up", json=given).json()["is_on"] is True
    assert http.get("/v1/billing").json()["top_up"]["amount_usd"] == "20"
    refused = http.put("/v1/billing/top-up", json={**given, "monthly_cap_usd": "19"})
    assert_canonical_error(refused, 422, "invalid_request", path=["body", "monthly_cap_usd"])
    assert http.delete("/v1/billing/top-up").json() == {"ended": True}
    assert http.delete("/v1/billing/top-up").json() == {"ended": False}


def test_an_own_code_is_made_once_and_not_redeemed(http):
    code = http.get("/v1/billing/referral").json()["code"]
    assert http.get("/v1/billing/referral").json()["code"] == code
    refused = http.post("/v1/billing/referral/redeem", json={"code": code})
    assert_canonical_error(refused, 409, "referral_refused")


def test_transfers_send_no_events(http):
    for provider in ("manual", "stripe"):
        answer = http.post(f"/v1/billing/providers/{provider}/events", content=b"{}")
        assert_canonical_error(answer, 404, "not_found")


def test_the_client_reads_an_accounts_money(server, http, paid):
    key = server.services.accounts.create_key(account="local", scope="read").secret
    with Client(ClientOptions(server.url, api_key=key)) as client:
        assert client.account.billing().provider == "manual"
        assert [one.id for one in client.account.purchases(page_size=1)] == [paid]
        lines = list(client.account.transactions(page_size=3))
        assert sum(Decimal(line.amount_usd) for line in lines) == 0
        assert len(lines) == 4
