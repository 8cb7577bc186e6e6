"""kill -9 of a whole server during an evaluation: its worker goes too, and the next one goes on."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from math import ceil
from pathlib import Path

import httpx
import pytest

from steelyard.settings import child_environment
from support.datasets.dataset_rows import make_rows
from support.kills import kills_and_seed
from support.tree.repository import ROOT
from support.waiting import let_a_moment_pass, started, wait_until

N_ROWS = 3000


def start_server(home: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A server process that answers, and its address."""
    address = home / "serve.json"
    address.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "serve", "--port", "0", "--home", str(home)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=child_environment(
            PYTHONPATH=str(ROOT / "server"),
            STEELYARD_ENGINE="hashing",
            STEELYARD_REQUESTS_PER_MINUTE="0",
        ),
    )

    def url() -> str | None:
        served = json.loads(address.read_text())
        return served["url"] if served["pid"] == process.pid else None

    try:
        return process, started(process, url, not_yet=(FileNotFoundError, json.JSONDecodeError))
    except AssertionError:
        process.kill()
        raise


def crash_through(home: Path, rng: random.Random, n_kills: int) -> dict[str, object]:
    """Score a dataset through kills of the server; gives the evaluation at its end."""
    home.mkdir(parents=True, exist_ok=True)
    process, url = start_server(home)
    try:
        body = {"name": "tickets", "evaluation": make_rows(N_ROWS)}
        dataset_id = httpx.post(f"{url}/v1/datasets", json=body, timeout=60).json()["id"]
        asked = {"dataset_id": dataset_id, "models": ["hashing"]}
        evaluation_id = httpx.post(f"{url}/v1/evaluations", json=asked, timeout=60).json()["data"][
            0
        ]["id"]
        done = 0
        for _ in range(n_kills):
            let_a_moment_pass(rng, 0, 4)
            process.kill()
            process.wait()
            process, url = start_server(home)
            seen = httpx.get(f"{url}/v1/evaluations/{evaluation_id}", timeout=60).json()
            assert seen["completed_rows"] >= done
            done = seen["completed_rows"]

        def ended():
            seen = httpx.get(f"{url}/v1/evaluations/{evaluation_id}", timeout=60).json()
            return seen if seen["status"] not in {"queued", "running"} else None

        return wait_until(ended, 90)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_an_evaluation_outlives_its_server(tmp_path):
    ended = crash_through(tmp_path / "home", random.Random(3), n_kills=1)
    assert (ended["status"], ended["completed_rows"]) == ("succeeded", N_ROWS)
    assert ended["metrics"]["n"] == 2 * N_ROWS


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_evaluations_outlive_many_servers(tmp_path):
    rng = random.Random(4)
    for number in range(ceil(kills_and_seed()[0] / 4)):
        ended = crash_through(tmp_path / f"home-{number}", rng, n_kills=4)
        assert (ended["status"], ended["completed_rows"]) == ("succeeded", N_ROWS)
