"""One of two hosts freezes in its turn to write (SIGSTOP), or loses its database: the other goes on.

``STEELYARD_TEST_KILLS`` says how often it freezes. Each line that is printed has the seconds until the
other host had written, or until the proxy left one out and how many requests were answered from then on.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine, NullPool, create_engine, text

from faults.audit import audit_server
from faults.fleet import PRICE
from faults.processes import MODEL, PATIENCE_S, ServeProcess, free_port, open_account_at
from support.kills import kills_and_seed
from support.servers.forwarder import forwarded
from support.servers.haproxy import HAPROXY, NEEDS_HAPROXY, haproxy, wait_for_servers
from support.servers.postgres_server import PostgresMissingError, PostgresServer, postgres_server
from support.servers.serving import REQUEST
from support.waiting import let_a_moment_pass, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform != "linux", reason="freezes processes"),
]

#: Seconds that a host may be held for, with what a busy machine adds.
HELD_S = 5.0
#: Requests that are counted once the proxy leaves a host out, and seconds that a busy machine has for them.
N_COUNTED, COUNTED_WITHIN_S = 500, 900
#: The session that does nothing in its turn: the writer's lock is its own, and it says no more.
HOLDS = text(
    "SELECT locks.pid, activity.state_change FROM pg_locks AS locks "
    "JOIN pg_stat_activity AS activity USING (pid) "
    "WHERE locks.locktype = 'advisory' AND locks.granted AND locks.mode = 'ExclusiveLock' "
    "AND activity.state = 'idle in transaction' AND activity.application_name = 'steelyard'"
)


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server of our own."""
    try:
        with postgres_server() as server:
            yield server
    except PostgresMissingError as error:
        pytest.skip(str(error))


class Asking(threading.Thread):
    """Asks a host for paid answers, each with a key of its own, until stopped."""

    def __init__(self, url: str, secret: str, name: str) -> None:
        super().__init__(daemon=True)
        self._url, self._name = url, name
        self._headers = {"Authorization": f"Bearer {secret}"}
        self.is_stopping = threading.Event()
        self.answers: dict[str, bytes] = {}
        self.refused: set[str] = set()
        #: When each request that has ended began, and whether it was answered.
        self.ended: list[tuple[float, bool]] = []

    def run(self) -> None:
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=PATIENCE_S) as http:
            for number in count():
                if self.is_stopping.is_set():
                    return
                key, began = f"{self._name}-{number}", time.monotonic()
                with suppress(httpx.TransportError):
                    answer = http.post("/v1/decide", json=REQUEST, headers={"Idempotency-Key": key})
                    if answer.status_code == 200:
                        self.answers[key] = answer.content
                    else:
                        self.refused.add(answer.json().get("error", {}).get("code", "proxy"))
                self.ended.append((began, key in self.answers))


def freeze_in_turn(host: ServeProcess, engine: Engine, moments: random.Random) -> None:
    """Stop a host while it has the writer's turn; one that has not goes on, and is stopped again."""

    def is_held() -> object:
        let_a_moment_pass(moments, 0, 0.05)
        os.kill(host.pid, signal.SIGSTOP)
        with engine.connect() as connection:
            before = connection.execute(HOLDS).all()
            connection.rollback()
            # The other host leaves its turns far sooner.
            let_a_moment_pass(moments, 0.15, 0.2)
            held = set(before) & set(connection.execute(HOLDS).all())
        if not held:
            os.kill(host.pid, signal.SIGCONT)
        return held

    wait_until(is_held)


def test_a_frozen_host_holds_the_other_for_some_seconds_at_most(
    tmp_path: Path, database: PostgresServer
) -> None:
    n_freezes, seed = kills_and_seed()
    moments = random.Random(seed)
    url = database.new_state()
    engine = create_engine(url, poolclass=NullPool)
    settings = {
        "STEELYARD_ACCOUNTS": "on",
        "STEELYARD_PRICES": f"{MODEL}={PRICE}",
        "STEELYARD_JOBS": "off",
        "STEELYARD_STATE_URL": url,
    }
    account, secret = open_account_at(url)
    hosts = [ServeProcess(tmp_path / name, **settings) for name in ("frozen", "other")]
    with ExitStack() as stack:
        for host in hosts:
            stack.callback(host.end)
            host.start()
        asking = [
            Asking(host.url, secret, f"{host.home.name}-{number}")
            for host in hosts
            for number in range(3)
        ]
        for one in asking:
            one.start()
        others = asking[3:]
        held_s = []
        for _ in range(n_freezes):
            freeze_in_turn(hosts[0], engine, moments)
            began, n_before = time.monotonic(), sum(len(one.answers) for one in others)
            wait_until(lambda n=n_before: sum(len(one.answers) for one in others) > n)
            held_s.append(time.monotonic() - began)
            print(f"{held_s[-1]:.2f} s", flush=True)  # noqa: T201
            # Each time it is away for another while: before and after its callers have given up.
            let_a_moment_pass(moments, 0, 4)
            os.kill(hosts[0].pid, signal.SIGCONT)
            wait_until(lambda: httpx.get(f"{hosts[0].url}/v1/health?for=traffic").is_success)
        for one in asking:
            one.is_stopping.set()
        for one in asking:
            one.join(PATIENCE_S)
        for host in hosts:
            host.stop()
    engine.dispose()
    books = audit_server(url)
    assert books.count("pending") == 0
    for one in asking:
        assert one.refused <= {"storage_unavailable", "request_in_progress"}
        for key in one.answers:
            ends = [row["state"] for row in books.by_key()[key]]
            assert ends.count("succeeded") == 1, (key, ends)
    charged = [row for row in books.operations.values() if row["account_id"] == account]
    assert len([row for row in charged if row["state"] == "succeeded"]) == len(
        {row["idempotency_key"] for row in charged if row["state"] == "succeeded"}
    )
    assert max(held_s) < HELD_S, held_s


@pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY)
@pytest.mark.parametrize("way", ["cut", "silent"])
def test_a_host_without_its_database_gets_no_requests(
    tmp_path: Path, database: PostgresServer, way: str
) -> None:
    url, log = database.new_state(), tmp_path / "haproxy.log"
    settings = {
        "STEELYARD_ACCOUNTS": "on",
        "STEELYARD_PRICES": f"{MODEL}={PRICE}",
        "STEELYARD_JOBS": "off",
    }
    _, secret = open_account_at(url)
    with ExitStack() as stack:
        forwarder, through = stack.enter_context(forwarded(url))
        hosts = [
            ServeProcess(tmp_path / name, **settings, STEELYARD_STATE_URL=place)
            for name, place in (("away", through), ("other", url))
        ]
        for host in hosts:
            stack.callback(host.end)
            host.start()
        ports = [*(host.port for host in hosts), free_port()]
        proxy = stack.enter_context(haproxy(free_port(), ports, log))
        wait_for_servers(proxy)
        asking = [Asking(proxy, secret, f"{way}-{number}") for number in range(8)]
        for client in asking:
            client.start()
        wait_until(lambda: sum(len(client.answers) for client in asking) > 50)
        fault_at = time.monotonic()
        if way == "cut":
            forwarder.close()
        else:
            forwarder.fall_silent()
        wait_until(lambda: is_left_out(log))
        left_out_at = time.monotonic()

        def counted() -> list[bool]:
            ended = [end for client in asking for end in client.ended]
            return [is_answered for began, is_answered in ended if began > left_out_at]

        wait_until(lambda: len(counted()) >= N_COUNTED, COUNTED_WITHIN_S)
        for client in asking:
            client.is_stopping.set()
        for client in asking:
            client.join(PATIENCE_S)
    answered, n = sum(counted()), len(counted())
    print(f"{way}: left out after {left_out_at - fault_at:.1f} s, then {answered} of {n} answered")  # noqa: T201
    assert answered / n >= 0.99


def is_left_out(log: Path) -> bool:
    """Return whether the proxy sends its first server nothing, as it said last."""
    logged = log.read_text()
    return logged.rfind("servers/server-1 is DOWN") > logged.rfind("servers/server-1 is UP")
