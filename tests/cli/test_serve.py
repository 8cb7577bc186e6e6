"""``steelyard serve``: a real process on a free port, stopped by a signal."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from steelyard.cli.serve import curl_command, loopback_address

ENVIRONMENT = {**os.environ, "STEELYARD_ENGINE": "hashing", "PYTHONUNBUFFERED": "1"}


@contextmanager
def serving(home, *arguments):
    """Start ``steelyard serve`` on a free port and wait for its address."""
    command = [sys.executable, "-m", "steelyard", "serve", "--port", "0", "--home", str(home)]
    process = subprocess.Popen(
        [*command, *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, _wait_for_address(process, home / "serve.json")
    finally:
        process.kill()
        process.communicate(timeout=30)


def _wait_for_address(process, path):
    for _ in range(300):
        if path.exists():
            return json.loads(path.read_text())
        if process.poll() is not None:
            raise AssertionError(process.stderr.read())
        time.sleep(0.1)
    raise AssertionError("The server did not start.")


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_told_to_stop(tmp_path, stop_signal):
    home = tmp_path / "home"
    with serving(home) as (process, address):
        assert address["pid"] == process.pid
        request = {
            "context": "Paid twice.",
            "decisions": [{"id": "d", "kind": "binary", "question": "Money back?"}],
        }
        answer = httpx.post(f"{address['url']}/v1/decide", json=request)
        assert answer.status_code == 200
        process.send_signal(stop_signal)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 0
    assert address["url"] in stdout
    assert f"curl -s {address['url']}/v1/decide" in stdout
    assert stdout.endswith("Stopped.\n")
    assert stderr == ""
    assert not (home / "serve.json").exists()


def test_the_printed_command_works(tmp_path):
    with serving(tmp_path) as (_, address):
        command = curl_command(address["url"])
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["decisions"].keys() == {"refund"}


def test_a_port_in_use_is_named(tmp_path, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port))
    assert result.exit_code == 1
    assert f"Port {port}" in result.stderr
    assert "--port" in result.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", ""])
def test_only_loopback_is_served(run, host):
    result = run("serve", "--host", host, "--port", "0")
    assert result.exit_code == 2
    assert "loopback" in result.stderr
    assert "accounts" in result.stderr


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.3.2.1", "127.3.2.1"),
        ("::1", "::1"),
    ],
)
def test_loopback_names(host, address):
    assert loopback_address(host) == address


def test_a_home_that_cannot_be_used(tmp_path, run):
    taken = tmp_path / "file"
    taken.write_text("")
    result = run("serve", "--port", "0", "--home", str(taken))
    assert result.exit_code == 1
    assert str(taken) in result.stderr
