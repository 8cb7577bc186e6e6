"""Hosts of this version are replaced by those of a next one under load, and no request is lost.

Both versions share the state and the store meanwhile: it is migrated while the hosts of this version
answer, and each host and worker is stopped and started as the next version.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.acknowledged import check_acknowledged
from faults.audit import Books, audit_server
from faults.fleet import FaultyStore, Fleet
from faults.jobs_traffic import N_ROWS, JobsClient
from faults.processes import CREDIT, ServeProcess
from faults.traffic import Client, clients, stop
from support.servers.haproxy import HAPROXY, NEEDS_HAPROXY
from support.servers.postgres_server import PostgresMissingError, postgres_server
from support.tree.next_version import next_version
from support.tree.repository import PACKAGE
from support.waiting import wait_until

pytest.importorskip("moto.server", reason="needs an S3 server: pip install steelyard[test-s3]")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.skipif(HAPROXY is None, reason=NEEDS_HAPROXY),
]

#: Answers that each client waits for before something changes.
N_ANSWERS = 25
#: What a host says to requests that reach it while it stops: it did none of them.
REFUSED = "503 engine_unavailable"
#: What any host says of an answer that was not written in five seconds, on a machine that does much else.
LATE = "409 outcome_unknown"
#: Makes an account as the version that it runs with does, and prints its id and the secret of a key.
OPEN_ACCOUNT = """
import sys
from steelyard.accounts.service import AccountService
from steelyard.storage import open_state
state = open_state(sys.argv[1])
accounts = AccountService(state, accounts_enabled=True)
account = accounts.create_account("customer")
accounts.add_credit(account.id, int(sys.argv[2]))
print(account.id, accounts.create_key(account=account.id).secret)
state.close()
"""
MIGRATE = """
import sys
from steelyard.storage import migrate, open_state
assert migrate.HEAD == "9999"
open_state(sys.argv[1]).close()
"""


@contextmanager
def fleet_of(version: Path, folder: Path) -> Iterator[Fleet]:
    """Run a fleet of a version on an empty state."""
    try:
        with postgres_server() as database, FaultyStore().running(folder / "moto.log") as store:
            settings = {"PYTHONPATH": str(version), "STEELYARD_LEAVING_S": "8"}
            with Fleet(folder, database.new_database(), store, **settings).running() as running:
                yield running
    except PostgresMissingError as error:
        pytest.skip(str(error))


def run_as(version: Path, script: str, database: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, database, str(CREDIT)],
        env={**os.environ, "PYTHONPATH": str(version)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_hosts_are_replaced_one_by_one_and_no_request_is_lost(tmp_path: Path) -> None:
    after = next_version(tmp_path / "after")
    with fleet_of(PACKAGE.parent, tmp_path) as running:
        account, secret = run_as(PACKAGE.parent, OPEN_ACCOUNT, running.database)
        jobs = JobsClient(running.url, secret)
        jobs.start()
        with clients(running.url, secret, seed=1, may_wait=True, may_fail=True) as asking:
            wait_for_answers(asking)
            run_as(after, MIGRATE, running.database)
            wait_for_answers(asking)
            assert not unanswered(asking)
            for process in (*running.hosts, *running.workers):
                replace(process, after, asking)
            # Whoever asks again is answered: nothing was begun.
            assert unanswered(asking).keys() <= {REFUSED}
            refused = unanswered(asking)
            for host in running.hosts:
                replace(host, after, asking)
            # Hosts say that they leave: the proxy sends a stopping one nothing.
            assert unanswered(asking) == refused
            jobs.is_stopping.set()
            stop(asking)
            jobs.join(300)

            def end() -> Books:
                running.stop()
                return audit_server(running.database)

            check_acknowledged(running.url, end, account=account, secret=secret, running=asking)
    assert jobs.surprises == [], jobs.surprises
    assert jobs.ended
    for one in jobs.ended.values():
        assert (one["status"], one["completed_rows"]) == ("succeeded", N_ROWS), one
    answers = sum(len(client.journal.decided) for client in asking)
    print(f"{answers} decisions, {len(jobs.ended)} jobs, {dict(refused)}")  # noqa: T201


def replace(process: ServeProcess, version: Path, asking: list[Client]) -> None:
    """Stop a process in good order, and start it as another version."""
    process.stop()
    process.become(PYTHONPATH=str(version))
    process.launch()
    if process.answers:
        process.wait_until_ready(300)
        n_answered = process.logged.count("/v1/decide")
        wait_until(lambda: process.logged.count("/v1/decide") > n_answered)
    wait_for_answers(asking)


def wait_for_answers(asking: list[Client]) -> None:
    """Wait until every client has a number of further decisions."""
    told = [len(client.journal.decided) for client in asking]

    def are_told() -> bool:
        for client in asking:
            assert client.journal.surprises == [], client.journal.surprises
        pairs = zip(asking, told, strict=True)
        return all(len(client.journal.decided) >= before + N_ANSWERS for client, before in pairs)

    wait_until(are_told, seconds=300)


def unanswered(asking: list[Client]) -> Counter[str]:
    """Return how often clients were asked to retry, or got nothing, by answer."""
    told = sum((client.journal.unanswered for client in asking), Counter())
    del told[LATE]
    return told
