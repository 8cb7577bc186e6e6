"""``steelyard serve --workers``: several processes, one port, one state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.serving import ENVIRONMENT, REQUEST, children_of, lives, serving, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

TWO = ("--workers", "2")


def test_a_killed_worker_is_replaced(tmp_path):
    with serving(tmp_path, *TWO) as (process, address):
        before = children_of(process.pid)
        assert len(before) == 2
        for victim in before:
            os.kill(victim, signal.SIGKILL)
        # Connections wait for the next worker: none is refused.
        answers = [
            httpx.post(f"{address['url']}/v1/decide", json=REQUEST, timeout=60) for _ in range(4)
        ]
        assert {answer.status_code for answer in answers} == {200}
        wait_until(lambda: len(children_of(process.pid)) == 2)
        assert children_of(process.pid).isdisjoint(before)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert stderr.count("ended with status -9") == 2


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_all_stop_together(tmp_path, stop_signal):
    with serving(tmp_path, *TWO) as (process, address):
        assert httpx.post(f"{address['url']}/v1/decide", json=REQUEST).status_code == 200
        workers = children_of(process.pid)
        process.send_signal(stop_signal)
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert stdout.endswith("Stopped.\n")
    assert not any(lives(worker) for worker in workers)
    assert not (tmp_path / "serve.json").exists()


def test_workers_do_not_outlive_their_supervisor(tmp_path):
    with serving(tmp_path, *TWO) as (process, _):
        workers = children_of(process.pid)
        process.kill()
        wait_until(lambda: not any(lives(worker) for worker in workers))


def test_figures_are_those_of_all(tmp_path):
    with serving(tmp_path, *TWO) as (_, address):
        for _ in range(10):  # each on a connection of its own
            httpx.post(f"{address['url']}/v1/decide", json=REQUEST).raise_for_status()
        text = httpx.get(f"{address['url']}/metrics").text
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in {"steelyard_decisions_total", "steelyard_queue_waiting"}
    }
    assert found == {"steelyard_decisions_total": 10, "steelyard_queue_waiting": 0}


def test_a_rate_is_that_of_all_together(tmp_path):
    variables = {"STEELYARD_REQUESTS_PER_MINUTE": "7"}
    with serving(tmp_path, *TWO, **variables) as (_, address):
        answers = [httpx.post(f"{address['url']}/v1/decide", json=REQUEST) for _ in range(12)]
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [429] * 5


def test_a_key_is_known_to_all(tmp_path):
    headers = {"Idempotency-Key": "once"}
    with serving(tmp_path, *TWO) as (_, address):
        answers = [
            httpx.post(f"{address['url']}/v1/decide", json=REQUEST, headers=headers)
            for _ in range(8)
        ]
    assert len({answer.content for answer in answers}) == 1
    assert [("idempotency-replayed" in a.headers) for a in answers] == [False] + [True] * 7


def test_a_worker_that_cannot_start_ends_it_all(tmp_path):
    command = [sys.executable, "-m", "steelyard", "serve", "--port", "0", "--home", str(tmp_path)]
    done = subprocess.run(
        [*command, *TWO],
        env={**ENVIRONMENT, "STEELYARD_BASE_MODELS": f"x={tmp_path / 'nothing'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "engine_unavailable" in done.stderr
    assert not (tmp_path / "serve.json").exists()


def test_a_worker_has_its_share_of_the_processors():
    from steelyard.cli.serve import threads_of_worker

    n_processors = len(os.sched_getaffinity(0))
    assert threads_of_worker(1) == n_processors
    assert threads_of_worker(1000) == 1
