"""Clients' acknowledgements, checked against the running servers and then against their state."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from faults.audit import Books
from faults.processes import CREDIT
from faults.traffic import Client
from steelyard.ledger.money import from_usd, to_usd
from support.waiting import wait_until


def check_acknowledged(
    url: str, end: Callable[[], Books], *, account: str, secret: str, running: list[Client]
) -> Books:
    """Check clients' acknowledgements; ``end`` stops the servers and returns the books of their state."""
    headers = {"Authorization": f"Bearer {secret}"}

    def wallet() -> dict[str, str]:
        found: dict[str, str] = httpx.get(f"{url}/v1/account", headers=headers).json()
        return found["wallet"]

    for client in running:
        client.settle_unheard()
        assert client.journal.surprises == [], client.journal.surprises
    assert all(client.journal.answers for client in running)
    # What died with a process frees its hold without anybody's asking.
    wait_until(lambda: wallet()["reserved_usd"] == "0", seconds=120)
    before = wallet()
    for client in running:
        client.check_replays()
        client.check_feedback()
    assert wallet() == before

    books = end()
    ends = {state: books.count(state) for state in ("succeeded", "released", "failed")}
    print(ends)  # noqa: T201  how many were under way when a process died
    assert books.count("pending") == 0
    revenue = 0
    of_key = books.by_key()
    for client in running:
        for key in client.journal.answers:
            ends = [row["state"] for row in of_key[key]]
            assert ends.count("succeeded") == 1, (key, ends)
            assert set(ends) <= {"succeeded", "released"}, (key, ends)
        for decision_id, answer in client.journal.decided.items():
            assert decision_id in books.decisions
            assert books.feedback[decision_id] == client.journal.reported[decision_id]
            charge = answer["charge"]
            operation = books.operations[charge["operation_id"]]
            assert (operation["account_id"], operation["state"]) == (account, "succeeded")
            assert to_usd(operation["amount_nano"]) == charge["amount_usd"]
            revenue += operation["amount_nano"]
    heard = {
        answer["charge"]["operation_id"]
        for client in running
        for answer in client.journal.decided.values()
    }
    assert len(heard) == sum(len(client.journal.decided) for client in running)
    # A request without a key whose answer got lost is charged; every other charge was heard of.
    unheard = [
        row
        for row in books.operations.values()
        if row["state"] == "succeeded" and row["id"] not in heard and row["account_id"] == account
    ]
    assert all(row["idempotency_key"] is None for row in unheard)
    assert len(unheard) <= sum(client.journal.n_unheard for client in running)
    charged = revenue + sum(row["amount_nano"] for row in unheard)
    assert from_usd(before["balance_usd"]) == CREDIT - charged
    return books
