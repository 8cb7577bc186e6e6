"""kill -9 at any moment: what was acknowledged stays, and nothing is charged twice."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

import httpx
import pytest

from faults.audit import audit
from faults.processes import CREDIT, MODEL, ServeProcess, open_account, serve_process
from faults.traffic import Client, clients, stop
from steelyard.billing.money import from_usd, to_usd
from support.serving import REQUEST, lives, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PRICED = {"STEELYARD_ACCOUNTS": "on", "STEELYARD_PRICES": f"{MODEL}=7"}
SEED = 20261121


def few_and_many(few: int, many: int) -> pytest.MarkDecorator:
    """Run with few rounds always, and with many where slow tests run."""
    slow = pytest.param(many, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])
    return pytest.mark.parametrize("n_rounds", [few, slow])


@pytest.fixture
def seed() -> int:
    print(f"seed {SEED}")  # noqa: T201  shown when the test fails
    return SEED


@few_and_many(4, 200)
def test_a_killed_server_loses_nothing_it_acknowledged(
    tmp_path: Path, seed: int, n_rounds: int
) -> None:
    moments = random.Random(seed)
    home = tmp_path / "home"
    account, secret = open_account(home)
    with serve_process(home, **PRICED) as server:
        server.start()
        with clients(server.url, secret, seed=seed) as running:
            for _ in range(n_rounds):
                time.sleep(moments.uniform(0.02, 0.3))
                server.kill()
                server.start()
            stop(running)
            check_acknowledged(server, account, secret, running)


@few_and_many(3, 100)
def test_a_killed_worker_or_supervisor_loses_nothing_it_acknowledged(
    tmp_path: Path, seed: int, n_rounds: int
) -> None:
    moments = random.Random(seed)
    home = tmp_path / "home"
    account, secret = open_account(home)
    with serve_process(home, "--workers", "2", **PRICED) as server:
        server.start()
        with clients(server.url, secret, seed=seed, may_wait=True) as running:
            for _ in range(n_rounds):
                workers = wait_until(lambda: _both(server))
                time.sleep(moments.uniform(0.1, 0.5))
                if moments.random() < 0.5:
                    os.kill(moments.choice(wait_until(server.workers)), signal.SIGKILL)
                    continue
                # Its workers end with it, by themselves, so that the port is free at once.
                server.kill()
                wait_until(partial(_none_lives, workers))
                server.start()
            stop(running)
            check_acknowledged(server, account, secret, running)


@few_and_many(1, 60)
def test_a_server_killed_while_it_starts_starts_the_next_time(
    tmp_path: Path, seed: int, n_rounds: int
) -> None:
    moments = random.Random(seed)
    home = tmp_path / "home"
    account, secret = open_account(home)
    with serve_process(home, **PRICED) as server:
        server.start()
        with clients(server.url, secret, seed=seed) as running:
            time.sleep(0.3)
            for _ in range(n_rounds):
                server.kill()
                server.launch()
                time.sleep(moments.uniform(0.2, 0.8))
            server.kill()
            server.start()
            stop(running)
            check_acknowledged(server, account, secret, running)


@few_and_many(1, 60)
def test_a_migration_that_is_killed_is_done_by_the_next_start(
    tmp_path: Path, seed: int, n_rounds: int
) -> None:
    moments = random.Random(seed)
    for number in range(n_rounds):
        home = tmp_path / str(number)
        with serve_process(home) as server:
            server.launch()
            # The migration comes when the file is there, and ends before the server answers.
            wait_until(server.state.exists)
            time.sleep(moments.uniform(0, 0.15))
            server.kill()
            server.start()
            answer = httpx.post(f"{server.url}/v1/decide", json=REQUEST)
            assert answer.status_code == 200, answer.text
            server.stop()
            assert answer.json()["id"] in audit(server.state).decisions


def _none_lives(processes: list[int]) -> bool:
    return not any(map(lives, processes))


def _both(server: ServeProcess) -> list[int] | None:
    workers = server.workers()
    return workers if len(workers) == 2 else None


def check_acknowledged(
    server: ServeProcess, account: str, secret: str, running: list[Client]
) -> None:
    """Hold what clients were told against the server that runs now, then against its state."""
    headers = {"Authorization": f"Bearer {secret}"}

    def wallet() -> dict[str, str]:
        found: dict[str, str] = httpx.get(f"{server.url}/v1/account", headers=headers).json()
        return found["wallet"]

    for client in running:
        client.settle_unheard()
        assert client.journal.surprises == []
    assert all(client.journal.answers for client in running)
    # What died with a process frees its hold without anybody's asking.
    wait_until(lambda: wallet()["reserved_usd"] == "0")
    before = wallet()
    for client in running:
        client.check_replays()
        client.check_feedback()
    assert wallet() == before
    server.stop()

    books = audit(server.state)
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
        if row["state"] == "succeeded" and row["id"] not in heard
    ]
    assert all(row["idempotency_key"] is None for row in unheard)
    assert len(unheard) <= sum(client.journal.n_unheard for client in running)
    charged = revenue + sum(row["amount_nano"] for row in unheard)
    assert from_usd(before["balance_usd"]) == CREDIT - charged
