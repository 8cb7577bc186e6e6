"""``steelyard serve --workers``: several processes, one port, one state."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from faults.processes import serve_process
from steelyard.storage.locks import FileLock
from support.servers.serving import ENVIRONMENT, REQUEST, children_of, lives, serving
from support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

TWO = ("--workers", "2")


@pytest.mark.slow
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


@pytest.mark.slow
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
    with serving(tmp_path, *TWO) as (process, address):
        url = httpx.URL(address["url"])
        # A request whose body never ends would be waited for, were the workers to stop in order.
        with socket.create_connection((url.host, url.port)) as half_sent:
            half_sent.sendall(b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\n")
            half_sent.sendall(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            wait_until(lambda: httpx.get(f"{url}/health").status_code == 200)
            workers = children_of(process.pid)
            process.kill()
            wait_until(lambda: not any(lives(worker) for worker in workers), 30)
            wait_until(lambda: is_free(url.host, url.port), 5)


def is_free(host, port):
    """Whether a server could listen there."""
    try:
        socket.create_server((host, port)).close()
    except OSError:
        return False
    return True


@pytest.mark.slow
def test_a_supervisor_killed_while_its_workers_start_leaves_the_port_free(tmp_path):
    locks = tmp_path / "home" / "state.sqlite.locks"
    locks.mkdir(parents=True)
    turn = FileLock(locks / "turn")
    turn.acquire()  # for which a worker waits before it opens the state
    with serve_process(tmp_path / "home", *TWO) as server:
        server.launch()
        wait_until(lambda: any(waits(pid, locks) for pid in children_of(server.pid)))
        # The others too: each has the port, whether it waits already or not.
        workers = set(children_of(server.pid))
        server.kill()
        wait_until(lambda: not any(lives(worker) for worker in workers), 30)
        turn.close()
        server.start()
        assert httpx.post(f"{server.url}/v1/decide", json=REQUEST).status_code == 200


def waits(pid, locks):
    with suppress(FileNotFoundError):
        opened = {descriptor.readlink() for descriptor in Path(f"/proc/{pid}/fd").iterdir()}
        return locks / "turn" in opened
    return False


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


@pytest.mark.slow
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
