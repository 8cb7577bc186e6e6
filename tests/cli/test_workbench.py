"""``steelyard workbench`` and the workbench of ``steelyard up``: another process, gone with ours."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress

import pytest

import steelyard
from steelyard.cli.workbench import serving_workbench
from steelyard.settings import InvalidSettingError, home_of, read_settings
from support.servers.serving import lines_until, serving
from support.waiting import wait_until

pytest.importorskip("panel", reason="needs the workbench extra")


def is_served(address):
    # Not with httpx: what is asked with it here is held to the service's own document.
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.mark.slow
def test_it_serves_until_it_is_stopped():
    with steelyard.embed(engine="hashing") as server:
        asked = ("--server", server.url, "--port", "0", "--open")
        process = subprocess.Popen(
            [sys.executable, "-m", "steelyard", "workbench", *asked],
            env={**os.environ, "BROWSER": "echo opened %s"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        address = lines_until(process, "Workbench on ").split()[2]
        assert is_served(address)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"opened {address}" in stdout
    assert "Stopped." in stdout
    assert not is_served(address)


@pytest.mark.slow
def test_up_starts_it_and_a_killed_up_takes_it_along(tmp_path):
    options = ("--no-samples", "--workbench-port", "0")
    with serving(tmp_path, *options, subcommand="up") as (process, _):
        address = lines_until(process, "Workbench on ").split()[2]
        assert is_served(address)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not is_served(address), 30)


def test_a_user_without_a_home_directory_has_one(monkeypatch):
    """Bokeh looks into it when it is imported, and a container's user need not have one."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    started = []

    def start(command, **options):
        started.append(options["env"])
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(FileNotFoundError), serving_workbench("http://127.0.0.1:9", port=0):
        pass
    assert started[0]["HOME"] == "/"
    with pytest.raises(InvalidSettingError, match="STEELYARD_HOME"):
        home_of(read_settings(environ={}))


@pytest.mark.slow
def test_it_ends_by_itself_while_a_page_waits_for_a_server_that_says_nothing():
    asked, connections = [], []

    def hear(silent):
        with suppress(OSError):
            while connection := silent.accept()[0]:
                connections.append(connection)
                asked.append(connection.recv(65536).split(b" ")[1])

    with socket.create_server(("127.0.0.1", 0)) as silent:
        threading.Thread(target=hear, args=(silent,), daemon=True).start()
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving_workbench(server, port=0) as (address, process):
            assert is_served(address)
            wait_until(lambda: set(asked) - {b"/v1/auth/session"}, last=lambda: asked)
    assert process.returncode == 0  # it was not killed


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--host", "0.0.0.0", "loopback"),
        ("--host", "example.org", "loopback"),
        ("--server", "nothing", "address is 'nothing'"),
    ],
)
def test_addresses_that_cannot_be_used_are_mistakes_in_the_call(option, value, message):
    refused = subprocess.run(
        [sys.executable, "-m", "steelyard", "workbench", option, value],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
