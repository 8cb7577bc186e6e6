"""``steelyard.embed``: a server inside the process, and how it comes and goes."""

from __future__ import annotations

import ast
import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from sanic_routing import router

import steelyard
from steelyard.app.deployment import _Default
from steelyard.client import ServerUnreachableError
from steelyard.errors import InvalidApiKeyError, MissingApiKeyError, NotFoundError
from steelyard.settings import InvalidSettingError
from support.datasets.dataset_rows import make_rows

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

DECISIONS = [{"id": "refund", "kind": "binary", "question": "Money back?"}]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith("STEELYARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    # What an earlier test of this process decided with is not this test's engine.
    monkeypatch.setattr("steelyard.app.deployment._default", _Default())


def run_program(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "STEELYARD_ENGINE": "hashing"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_a_server_and_a_client_of_it():
    with steelyard.embed() as server:
        answer = server.client.decide("Paid twice.", DECISIONS)
        assert answer.decisions["refund"].top in {"yes", "no"}
        assert server.client.health().version == steelyard.__version__
        assert server.client.url == server.url
        assert "running" in repr(server)
        assert server.is_running
    assert not server.is_running
    assert "stopped" in repr(server)


def test_frames_of_the_environment_are_another_server_s(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_FRAMES_URL", str(tmp_path / "theirs"))
    with steelyard.embed(tmp_path / "home", jobs="off") as server:
        server.client.datasets.create("n", make_rows(6))
    assert not (tmp_path / "theirs").exists()
    assert list((tmp_path / "home" / "frames" / "datasets").glob("*.parquet"))


def test_the_answer_is_that_of_deciding_in_process():
    with steelyard.embed() as server:
        answer = server.client.decide("Paid twice.", DECISIONS)
    alone = steelyard.decide("Paid twice.", DECISIONS)
    assert answer.decisions["refund"].probabilities == alone["decisions"]["refund"]["probabilities"]


def test_a_further_base_model_answers_in_process(monkeypatch):
    monkeypatch.setenv("STEELYARD_BASE_MODELS", "double=hashing")
    for name in ("double", "hashing"):
        assert steelyard.decide("Paid twice.", DECISIONS, model=name)["model"] == name
    with pytest.raises(steelyard.errors.NotFoundError, match="no model named 'other'"):
        steelyard.decide("Paid twice.", DECISIONS, model="other")


def test_two_at_once_do_not_see_each_other():
    with steelyard.embed() as first, steelyard.embed() as second:
        assert first.url != second.url
        assert first.home != second.home
        mine = first.client.decide("Paid twice.", DECISIONS)
        assert mine.stored
        with pytest.raises(NotFoundError):
            second.client.feedback(mine.id, {"refund": "yes"})
        assert first.client.feedback(mine.id, {"refund": "yes"}).recorded == ["refund"]


def test_a_state_in_the_environment_is_another_servers(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_STATE_URL", f"sqlite:///{tmp_path / 'other.sqlite'}")
    monkeypatch.setenv("STEELYARD_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("STEELYARD_PORT", "1")
    with steelyard.embed() as server:
        server.client.decide("Paid twice.", DECISIONS)
    assert list(tmp_path.iterdir()) == []


def test_a_home_is_kept_and_a_temporary_one_is_not(tmp_path):
    with steelyard.embed(tmp_path / "home") as server:
        kept = server.client.decide("Paid twice.", DECISIONS)
    with steelyard.embed(tmp_path / "home") as server:
        assert server.client.feedback(kept.id, {"refund": "no"}).recorded == ["refund"]
    with steelyard.embed() as server:
        temporary = server.home
        assert temporary.is_dir()
    assert not temporary.exists()


def test_it_starts_again_on_the_same_port():
    with steelyard.embed() as server:
        port = int(server.url.rsplit(":", 1)[1])
        server.client.health()
    for _ in range(2):
        with steelyard.embed(port=port) as server:
            assert server.url.endswith(f":{port}")
            server.client.health()


def test_stopping_twice_is_stopping_once():
    server = steelyard.embed()
    url = server.url
    server.stop()
    server.stop()
    with steelyard.connect(url, max_retries=0) as client, pytest.raises(ServerUnreachableError):
        client.health()
    host, port = url.removeprefix("http://").split(":")
    socket.create_server((host, int(port))).close()


@pytest.mark.slow
def test_no_thread_and_no_file_is_left():
    with steelyard.embed() as server:
        server.client.decide("Paid twice.", DECISIONS)
    threads, files = threads_and_files()
    times = 4
    for _ in range(times):
        with steelyard.embed() as server:
            server.client.decide("Paid twice.", DECISIONS)
    threads_after, files_after = threads_and_files()
    # What a server leaves comes once for each; the process's earlier tests open and close a few.
    assert threads_after < threads + times
    assert files_after < files + times


def threads_and_files() -> tuple[int, int]:
    gc.collect()
    return threading.active_count(), len([*Path("/dev/fd").iterdir()])


def test_signal_handlers_stay_the_callers():
    watched = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in watched]
    with steelyard.embed() as server:
        server.client.health()
        assert [signal.getsignal(number) for number in watched] == before
    assert [signal.getsignal(number) for number in watched] == before


def test_inside_a_running_loop():
    async def main():
        loop = asyncio.get_running_loop()
        with steelyard.embed() as server:
            assert asyncio.get_running_loop() is loop
            async with steelyard.connect_async(server.url) as client:
                answers = await asyncio.gather(
                    *(client.decide("Paid twice.", DECISIONS) for _ in range(8))
                )
            return {answer.decisions["refund"].p_top for answer in answers}

    assert len(asyncio.run(main())) == 1


def test_started_and_stopped_from_other_threads():
    urls = []

    def work():
        with steelyard.embed() as server:
            server.client.decide("Paid twice.", DECISIONS)
            urls.append(server.url)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(urls)) == 3


def test_no_thread_comes_between_while_routes_are_compiled(monkeypatch):
    parsed, collected = [], []

    def parse(source):
        thresholds = gc.get_threshold()
        gc.set_threshold(1)
        gc.callbacks.append(come_between)
        try:
            parsed.append(ast.parse(source))
        finally:
            gc.callbacks.remove(come_between)
            gc.set_threshold(*thresholds)
        return parsed[-1]

    def come_between(phase, _):
        if not collected:
            collected.append(phase)
            other = threading.Thread(target=ast.parse, args=("1 + 1",))
            other.start()
            other.join()

    monkeypatch.setattr(router, "ast", SimpleNamespace(**{**vars(ast), "parse": parse}))
    with steelyard.embed() as server:
        assert server.client.health().version == steelyard.__version__
    assert parsed
    assert not collected
    assert gc.isenabled()


def test_a_port_that_is_taken_is_named_and_nothing_is_left():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        threads = threading.active_count()
        with pytest.raises(OSError, match=f"Port {port}"):
            steelyard.embed(port=port)
        assert threading.active_count() <= threads


def test_unusable_arguments_are_named(tmp_path):
    with pytest.raises(InvalidSettingError, match="host"):
        steelyard.embed(host="0.0.0.0")
    with pytest.raises(InvalidSettingError, match="colour"):
        steelyard.embed(colour="red")
    with pytest.raises(InvalidSettingError, match="deadline_s"):
        steelyard.embed(deadline_s=-1)
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(OSError, match="file"):
        steelyard.embed(taken)


def test_settings_reach_the_server():
    with steelyard.embed(requests_per_minute=0, store="off") as server:
        assert not server.client.decide("Paid twice.", DECISIONS).stored


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        ({}, None, 0),
        ({}, "7", 7),
        ({"requests_per_minute": 8}, "7", 8),
        ({"accounts": "on"}, None, 600),
    ],
)
def test_without_accounts_callers_wait_only_if_configured(monkeypatch, given, variable, expected):
    if variable is None:
        monkeypatch.delenv("STEELYARD_REQUESTS_PER_MINUTE", raising=False)
    else:
        monkeypatch.setenv("STEELYARD_REQUESTS_PER_MINUTE", variable)
    with steelyard.embed(engine="hashing", **given) as server:
        limits = server.client.account.get().effective_limits
        assert limits["requests_per_minute"] == expected


def test_with_accounts_the_client_has_a_key_and_others_need_one():
    with steelyard.embed(accounts="on") as server:
        summary = server.client.account.get()
        assert summary.accounts_enabled
        server.client.decide("Paid twice.", DECISIONS)
        assert server.api_key not in repr(server)
        with steelyard.connect(server.url, server.api_key) as client:
            [key] = client.account.keys()
            assert key.revoked_at is None
        with steelyard.connect(server.url) as client, pytest.raises(MissingApiKeyError):
            client.decide("Paid twice.", DECISIONS)
        with steelyard.connect(server.url, "nobody") as client, pytest.raises(InvalidApiKeyError):
            client.decide("Paid twice.", DECISIONS)


def test_the_key_of_an_earlier_start_is_revoked(tmp_path):
    with steelyard.embed(tmp_path / "home", accounts="on") as server:
        earlier = server.api_key
    with steelyard.embed(tmp_path / "home", accounts="on") as server:
        assert len([*server.client.account.keys()]) == 2
        with steelyard.connect(server.url, earlier) as client, pytest.raises(InvalidApiKeyError):
            client.account.get()


@pytest.mark.slow
def test_the_process_ends_without_stopping_it():
    program = """
import steelyard
server = steelyard.embed()
server.client.health()
print(server.home)
"""
    home = run_program(program).strip()
    assert home
    assert not Path(home).exists()


@pytest.mark.slow
def test_a_process_that_fails_ends_too():
    program = "import steelyard; steelyard.embed(); raise SystemExit(3)"
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == 3


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_leaves_the_parents_server_alone():
    program = f"""
import atexit, os, steelyard
server = steelyard.embed()
child = os.fork()
if child == 0:
    server.stop()
    with steelyard.connect(server.url) as client:
        client.decide("x", {DECISIONS!r})
    with steelyard.embed() as own:
        assert own.url != server.url
        own.client.decide("x", {DECISIONS!r})
    atexit._run_exitfuncs()  # ours; the end of native libraries in a forked child is theirs
    os._exit(0 if server.home.is_dir() and not server.is_running else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
server.client.decide("x", {DECISIONS!r})
print(status, server.home.is_dir())
"""
    assert run_program(program) == "0 True\n"


@pytest.mark.slow
def test_another_process_can_ask_it():
    with steelyard.embed() as server:
        asked = f"import steelyard; print(steelyard.connect({server.url!r}).health().status)"
        assert run_program(asked) == "ok\n"
