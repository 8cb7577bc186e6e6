"""Usage: the sums by day, key, model and family agree with the ledger to the nano-dollar."""

from __future__ import annotations

import asyncio
import csv
import io

import httpx
import pytest
from sqlalchemy import insert

from steelyard.caller import Caller
from steelyard.families.tables import families
from steelyard.ledger.money import from_usd, to_usd
from steelyard.operations.write import Write
from steelyard.people import usage_service
from steelyard.people.usage_service import UsageService
from steelyard.people.wire import UsageQuery
from support.accounts.operating import START, Desk
from support.api.error_shape import assert_canonical_error
from support.servers.live_server import live_server

USAGE = "/v1/account/usage"
DECIDE = {
    "context": "The parcel came open.",
    "decisions": [
        {"id": "a", "kind": "binary", "question": "Is it damaged?"},
        {"id": "b", "kind": "binary", "question": "Is it late?"},
    ],
}


@pytest.mark.usefixtures("every_response_is_checked")
def test_costs_of_calls_agree_with_the_ledger():
    with live_server(accounts="on", prices="hashing=7") as server:
        accounts = server.services.accounts
        acme = accounts.create_account("acme").id
        accounts.add_credit(acme, 10**9)
        keys = [accounts.create_key(account=acme, name=f"key {n}") for n in range(2)]
        charged = {}
        with httpx.Client(base_url=server.url) as http:

            def get(path, **params):
                headers = {"Authorization": f"Bearer {keys[0].secret}"}
                return http.get(path, params=params, headers=headers)

            for n, key in enumerate(keys):
                for _ in range(n + 1):
                    bearer = {"Authorization": f"Bearer {key.secret}"}
                    answer = http.post("/v1/decide", json=DECIDE, headers=bearer)
                    used = charged.setdefault(key.key.id, [0, 0])
                    used[0] += answer.json()["usage"]["input_tokens"]
                    used[1] += from_usd(answer.json()["charge"]["amount_usd"])
            by_key = get(USAGE, by="key").json()
            told = {
                line["name"]: [line["tokens"], from_usd(line["cost_usd"])]
                for line in by_key["data"]
            }
            assert told == charged
            assert [line["label"] for line in by_key["data"]] == ["key 0", "key 1"]
            ledger = csv.DictReader(io.StringIO(get("/v1/billing/transactions", format="csv").text))
            spent = sum(from_usd(row["amount_usd"]) for row in ledger if row["book"] == "revenue")
            for by, n_lines in (("day", 1), ("key", 2), ("model", 1), ("family", 1)):
                usage = get(USAGE, by=by).json()
                total = usage["total"]
                assert (total["calls"], total["decisions"]) == (3, 6)
                assert from_usd(total["cost_usd"]) == spent
                assert len(usage["data"]) == n_lines or by == "day"
            assert usage["data"][0]["name"] is None, "a base model is of no family"
            for given in ({"since": 10, "until": 5}, {"since": 0}):
                refused = get(USAGE, **given)
                assert_canonical_error(refused, 422, "invalid_request")


def test_days_models_and_families_of_a_span(state, monkeypatch):
    desk = Desk(state)
    account = desk.accounts.create_account("acme").id
    desk.accounts.add_credit(account, 10**12)
    names = ("router", "router@2", "base", "labeling")
    state.write_now(
        lambda connection: connection.execute(
            insert(families),
            {
                "account_id": account,
                "name": "router",
                "dataset_id": "ds_1",
                "created_at": 1.0,
                "body": b"{}",
            },
        ).close()
    )
    caller = Caller(account, None, "full", "")

    async def spend(model, amount):
        accepted = await desk.log.accept(
            Write(caller, "POST /v1/decide"),
            model=model,
            reserved_nano=amount + 1,
            input_tokens=10,
            n_decisions=2,
        )
        await desk.log.settle(accepted, amount_nano=amount, body=b"{}")

    for day in range(3):
        desk.clock.at = START + day * 86_400
        for n, model in enumerate(names):
            asyncio.run(spend(model, 10 ** (2 * n) + day))
    service = UsageService(state, now=lambda: desk.clock.at + 1)

    def usage(**given):
        return asyncio.run(service.usage(caller, UsageQuery(**given)))

    days = usage(by="day")
    assert [line.name for line in days.data] == ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert [line.cost_usd for line in days.data] == [to_usd(1010101 + 4 * n) for n in range(3)]
    assert (days.total.calls, days.total.tokens, days.total.decisions) == (12, 120, 24)
    assert days.total.cost_usd == to_usd(desk.books(account)["revenue"])
    only = usage(by="day", since=START + 86_400, until=START + 2 * 86_400)
    assert [line.name for line in only.data] == ["2026-11-19"]
    by_family = {line.name: line.cost_usd for line in usage(by="family").data}
    assert by_family == {"router": to_usd(3 * 101 + 6), None: to_usd(3 * 1010000 + 6)}
    monkeypatch.setattr(usage_service, "MAX_LINES", 2)
    first, rest = usage(by="model").data
    assert (first.name, rest.name, rest.calls) == ("labeling", None, 9)
    assert usage(by="model").total.cost_usd == days.total.cost_usd
    assert usage(until=START).data == []
