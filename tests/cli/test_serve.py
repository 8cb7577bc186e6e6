"""``steelyard serve``: a real process on a free port, stopped by a signal."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys

import click
import httpx
import pytest

from steelyard.cli.serve import address_file, bind, curl_command, free_port, listen_address
from support.servers.serving import ENVIRONMENT, REQUEST, lines_until, serving


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_stopped(tmp_path, stop_signal):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    with serving(home) as (process, address):
        assert address["pid"] == process.pid
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert stat.S_IMODE((home / "serve.json").stat().st_mode) == 0o600
        answer = httpx.post(f"{address['url']}/v1/decide", json=REQUEST)
        assert answer.status_code == 200
        process.send_signal(stop_signal)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 0
    assert address["url"] in stdout
    assert f"curl -s {address['url']}/v1/decide" in stdout
    assert stdout.endswith("Stopped.\n")
    [line] = [json.loads(line) for line in stderr.splitlines()]
    assert (line["route"], line["status"]) == ("/v1/decide", 200)
    assert not (home / "serve.json").exists()


def test_the_printed_command_works(tmp_path):
    with serving(tmp_path) as (_, address):
        command = curl_command(address["url"])
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["decisions"].keys() == {"team"}
        # A script of this machine is not held up.
        limits = httpx.get(f"{address['url']}/v1/account").json()["effective_limits"]
        assert limits["requests_per_minute"] == limits["tokens_per_minute"] == 0


def test_commands_ask_the_server_of_their_home_unless_another_is_named(tmp_path, run, monkeypatch):
    monkeypatch.setenv("STEELYARD_HOME", str(tmp_path))
    with serving(tmp_path):
        assert run("dataset", "list").exit_code == 0
        elsewhere = run("dataset", "list", "--url", "http://127.0.0.1:1")
        assert "127.0.0.1:1" in elsewhere.stderr
        monkeypatch.setenv("STEELYARD_URL", "http://127.0.0.1:2")
        assert "127.0.0.1:2" in run("dataset", "list").stderr


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
    assert listen_address(host, accounts=False) == address
    assert listen_address(host, accounts=True) == address


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7"])
def test_accounts_open_other_addresses(host):
    assert listen_address(host, accounts=True) == host


@pytest.mark.slow
def test_with_accounts_a_key_is_needed(tmp_path):
    with serving(tmp_path, "--accounts", "on") as (_, address):
        refused = httpx.post(f"{address['url']}/v1/decide", json=REQUEST)
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "missing_api_key"
        assert httpx.get(f"{address['url']}/v1/ready").status_code == 200


@pytest.mark.slow
def test_the_log_level_is_kept(tmp_path):
    with serving(tmp_path, STEELYARD_LOG_LEVEL="warning") as (process, address):
        assert httpx.get(f"{address['url']}/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=30)
    assert stderr == ""


def test_a_home_that_cannot_be_used(tmp_path, run):
    taken = tmp_path / "file"
    taken.write_text("")
    result = run("serve", "--port", "0", "--home", str(taken))
    assert result.exit_code == 1
    assert str(taken) in result.stderr


def test_a_folder_with_other_things_keeps_its_mode(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    tmp_path.chmod(0o755)
    with address_file(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_the_address_of_a_server_in_another_container_is_left(tmp_path):
    path = tmp_path / "serve.json"
    with address_file(tmp_path) as write:
        write("http://127.0.0.1:1")
        other = {**json.loads(path.read_text()), "url": "http://127.0.0.1:2"}  # the same pid
        path.write_text(json.dumps(other))
    assert json.loads(path.read_text()) == other


@pytest.mark.slow
def test_a_second_server_of_a_home_leaves_the_address_of_the_first(tmp_path, run):
    with serving(tmp_path) as (process, address):
        path = tmp_path / "serve.json"
        failed = run("serve", "--port", "0", "--home", str(tmp_path), "--engine", "nothing")
        assert failed.exit_code != 0
        assert json.loads(path.read_text()) == address
        second = subprocess.Popen(
            [sys.executable, "-m", "steelyard", "serve", "--port", "0", "--home", str(tmp_path)],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            lines_until(second, "Listening on ")
            assert json.loads(path.read_text()) == address
            second.send_signal(signal.SIGTERM)
            _, stderr = second.communicate(timeout=30)
            assert f"{path} stays that of the server on {address['url']}" in stderr
        finally:
            second.kill()
        assert json.loads(path.read_text()) == address
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert not path.exists()


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (("serve", "--home", "{home}"), "--port"),
        (("up", "--home", "{home}"), "--port"),
        (("workbench",), "--port"),
        (("mcp",), "--port"),
    ],
)
def test_a_port_that_is_taken_is_said_in_one_line(tmp_path, run, command, flag):
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = str(taken.getsockname()[1])
        words = [word.format(home=tmp_path) for word in command]
        result = run(*words, flag, port)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: Port {port} of 127.0.0.1 is in use; give another {flag}, or 0 for a free one.\n"
    )


def test_a_taken_default_port_is_left_for_a_free_one(capsys):
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port("127.0.0.1", port) == 0
        assert f"Port {port} of 127.0.0.1 is in use" in capsys.readouterr().err
        with pytest.raises(click.ClickException, match="another --workbench-port"):
            bind("127.0.0.1", port, "--workbench-port")
    assert free_port("127.0.0.1", port) == port
