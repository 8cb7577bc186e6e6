"""Several hosts are one service: limits, money, keys and jobs hold, whichever of them dies.

Three servers and two workers share a PostgreSQL database and an S3 store behind HAProxy. One of each
has a clock that is a minute off, where libfaketime is installed.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from sqlalchemy import NullPool, create_engine, text

from faults.acknowledged import check_acknowledged
from faults.audit import Books, audit_server
from faults.fleet import FAKETIME, N_HOSTS, FaultyStore, Fleet
from faults.jobs_traffic import N_ROWS, JobsClient
from faults.processes import ServeProcess, open_account_at
from faults.traffic import clients, stop
from steelyard.accounts.service import AccountService
from steelyard.ledger.money import from_usd
from steelyard.storage import open_state
from support.kills import kills_and_seed
from support.servers.haproxy import HAPROXY, NEEDS_HAPROXY
from support.servers.postgres_server import PostgresMissingError, PostgresServer, postgres_server
from support.servers.serving import REQUEST
from support.servers.webhook_endpoint import webhook_endpoint
from support.waiting import let_a_moment_pass, wait_until

pytest.importorskip("moto.server", reason="needs an S3 server: pip install steelyard[test-s3]")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY),
]

PER_MINUTE = 300
#: Requests that a cap and a credit have room for.
N_PAID = 30


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server of our own: these tests stop it."""
    try:
        with postgres_server() as server:
            yield server
    except PostgresMissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyStore]:
    """A store that fails on command."""
    with FaultyStore().running(tmp_path_factory.mktemp("store") / "moto.log") as running:
        yield running


@contextmanager
def fleet(
    folder: Path, database: PostgresServer, store: FaultyStore, per_minute: int
) -> Iterator[Fleet]:
    """Run a fleet on an empty state."""
    url = database.new_database()
    settings = {"STEELYARD_REQUESTS_PER_MINUTE": str(per_minute)}
    with Fleet(folder, url, store, **settings).running() as running:
        yield running


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def decide(url: str, secret: str, key: str | None = None) -> httpx.Response:
    headers = bearer(secret) | ({} if key is None else {"Idempotency-Key": key})
    return httpx.post(f"{url}/v1/decide", json=REQUEST, headers=headers, timeout=60)


def test_minutes_caps_credit_and_keys_hold_over_hosts(
    tmp_path: Path, database: PostgresServer, store: FaultyStore
) -> None:
    with fleet(tmp_path, database, store, PER_MINUTE) as running:
        check_minute(running)
        account, secret = open_account_at(running.database, "rich")
        cost = from_usd(decide(running.url, secret).json()["charge"]["amount_usd"])
        assert cost > 0
        capped, spent = spend_cap(running, account, cost)
        poor = spend_credit(running, cost)
        answers = ask_with_keys(running, secret)
        running.stop()
    books = audit_server(running.database)
    assert books.count("pending") == 0
    for key, answer in answers.items():
        ends = [row["state"] for row in books.by_key()[key]]
        assert ends.count("succeeded") == 1, (key, answer)
    of_key = [row for row in books.operations.values() if row["key_id"] == capped]
    assert sum(row["amount_nano"] for row in of_key) == spent * cost
    of_poor = [row for row in books.operations.values() if row["account_id"] == poor]
    assert sum(row["amount_nano"] for row in of_poor if row["state"] != "credit") == N_PAID * cost


def check_minute(running: Fleet) -> None:
    """Flood the hosts with one key's requests: they have one limit together."""
    _, secret = open_account_at(running.database, "hasty")
    began = time.monotonic()

    def flood(_: int) -> int:
        statuses = []
        with httpx.Client(base_url=running.url, headers=bearer(secret), timeout=60) as http:
            while statuses.count(429) < 5:
                statuses.append(http.get("/v1/account").status_code)
        assert set(statuses) <= {200, 429}
        return statuses.count(200)

    with ThreadPoolExecutor(6) as pool:
        passed = sum(pool.map(flood, range(6)))
    took_s = time.monotonic() - began
    # A host may keep a twentieth of the minute to itself; a window that rolls on gives its part.
    assert PER_MINUTE * (1 - N_HOSTS / 20) - 1 <= passed <= PER_MINUTE * (1 + took_s / 60)
    # Another caller's minute is its own.
    _, other = open_account_at(running.database, "calm")
    assert httpx.get(f"{running.url}/v1/account", headers=bearer(other)).is_success


def spend_cap(running: Fleet, account: str, cost: int) -> tuple[str, int]:
    """Spend a key's cap through all hosts at once; return the key and how often it was answered."""
    state = open_state(running.database)
    try:
        accounts = AccountService(state, accounts_enabled=True)
        cap = N_PAID * cost + cost // 2
        key = accounts.create_key(account=account, scope="inference", monthly_cap_nano=cap)
    finally:
        state.close()
    n_answered = ask_until_refused(running, key.secret, "key_cap_reached")
    assert n_answered == N_PAID
    return key.key.id, n_answered


def spend_credit(running: Fleet, cost: int) -> str:
    """Spend an account's credit through all hosts at once; return the account."""
    account, secret = open_account_at(running.database, "poor", credit=N_PAID * cost)
    assert ask_until_refused(running, secret, "insufficient_credit") == N_PAID
    wallet = httpx.get(f"{running.url}/v1/account", headers=bearer(secret)).json()["wallet"]
    assert (wallet["balance_usd"], wallet["reserved_usd"]) == ("0", "0")
    return account


def ask_until_refused(running: Fleet, secret: str, code: str) -> int:
    """Ask every host at once until each refuses for a reason; return how many answers there were."""

    def ask(host: ServeProcess) -> int:
        n_answered = 0
        while (answer := decide(host.url, secret)).status_code == 200:
            n_answered += 1
        assert answer.json()["error"]["code"] == code, answer.text
        return n_answered

    with ThreadPoolExecutor(N_HOSTS) as pool:
        n_answered = sum(pool.map(ask, running.hosts))
    # What another request held when one was refused may be free again.
    return n_answered + ask(running.hosts[0])


def ask_with_keys(running: Fleet, secret: str) -> dict[str, bytes]:
    """Send each key to every host at once: it runs once, and all get its answer."""
    together = threading.Barrier(N_HOSTS)

    def ask_all(host: ServeProcess) -> dict[str, bytes]:
        told = {}
        for number in range(10):
            together.wait(60)
            answer = wait_until(partial(ask_to_the_end, host, f"together-{number}"))
            told[f"together-{number}"] = answer.content
        return told

    def ask_to_the_end(host: ServeProcess, key: str) -> httpx.Response | None:
        answer = decide(host.url, secret, key)
        if answer.status_code == 409:
            assert answer.json()["error"]["code"] == "request_in_progress"
            return None
        assert answer.status_code == 200, answer.text
        return answer

    with ThreadPoolExecutor(N_HOSTS) as pool:
        first, *others = pool.map(ask_all, running.hosts)
    assert all(one == first for one in others)
    return first


def test_killed_hosts_lose_nothing_they_acknowledged(
    tmp_path: Path, database: PostgresServer, store: FaultyStore
) -> None:
    n_kills, seed = kills_and_seed()
    moments = random.Random(seed)
    print(f"seed {seed}, {n_kills} faults, other clocks: {FAKETIME is not None}")  # noqa: T201
    with webhook_endpoint() as endpoint, fleet(tmp_path, database, store, 20_000) as running:
        account, secret = open_account_at(running.database)
        hook = {"url": endpoint.url, "events": ["job.succeeded", "job.failed"]}
        made = httpx.post(
            f"{running.url}/v1/integrations/webhooks", json=hook, headers=bearer(secret)
        )
        endpoint.secret = made.json()["secret"]
        jobs = JobsClient(running.url, secret)
        jobs.start()
        with clients(running.url, secret, seed=seed, may_wait=True, may_fail=True) as asking:
            for number in range(n_kills):
                let_a_moment_pass(moments, 0.1, 1)
                running.go_wrong(moments, database)
                print(number, dict(running.faults), flush=True)  # noqa: T201
            jobs.is_stopping.set()
            stop(asking)
            jobs.join(300)
            assert not jobs.is_alive()
            assert jobs.surprises == [], jobs.surprises
            wait_until(lambda: {told["subject"] for told in endpoint.told} >= set(jobs.ended))

            def end() -> Books:
                running.stop()
                return audit_server(running.database)

            check_acknowledged(running.url, end, account=account, secret=secret, running=asking)
    check_jobs(running, jobs)
    print(f"{len(jobs.ended)} jobs, {store.n_failed} failures of the store")  # noqa: T201


def check_jobs(running: Fleet, jobs: JobsClient) -> None:
    """Check that each job ended once, and well."""
    assert jobs.ended
    for one in jobs.ended.values():
        assert (one["status"], one["completed_rows"]) == ("succeeded", N_ROWS), one
    engine = create_engine(running.database, poolclass=NullPool)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT id, status FROM evaluations")).all()
        told = connection.execute(text("SELECT event, subject FROM webhook_deliveries")).all()
    assert {tuple(row) for row in rows} == {(one, "succeeded") for one in jobs.ended}
    assert sorted(map(tuple, told)) == sorted(("job.succeeded", one) for one in jobs.ended)
