"""kill -9 at any moment: acknowledged writes stay, and nothing is charged twice."""

from __future__ import annotations

import os
import random
import signal
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest

from faults import acknowledged
from faults.audit import Books, audit
from faults.processes import MODEL, ServeProcess, open_account, serve_process
from faults.traffic import Client, clients, stop
from support.servers.serving import REQUEST, lives
from support.waiting import let_a_moment_pass, wait_until

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
                let_a_moment_pass(moments, 0.02, 0.3)
                server.kill()
                server.start()
            stop(running)
            check_acknowledged(server, account, secret, running)


@pytest.mark.slow
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
                let_a_moment_pass(moments, 0.1, 0.5)
                if moments.random() < 0.5:
                    os.kill(moments.choice(wait_until(server.workers)), signal.SIGKILL)
                    continue
                # Its workers end with it, by themselves, so that the port is free at once.
                server.kill()
                wait_until(partial(_none_lives, workers))
                server.start()
            stop(running)
            check_acknowledged(server, account, secret, running)


@pytest.mark.slow
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
            let_a_moment_pass(moments, 0.2, 0.4)
            for _ in range(n_rounds):
                server.kill()
                server.launch()
                let_a_moment_pass(moments, 0.2, 0.8)
            server.kill()
            server.start()
            stop(running)
            check_acknowledged(server, account, secret, running)


@pytest.mark.slow
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
            let_a_moment_pass(moments, 0, 0.15)
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
    """Check clients' acknowledgements against the running server, then against its state."""

    def end() -> Books:
        server.stop()
        return audit(server.state)

    acknowledged.check_acknowledged(
        server.url, end, account=account, secret=secret, running=running
    )
