"""A server with a judge: its route, and callers when the judge's process is killed."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec import UNSET

from steelyard.client import Client, ClientOptions
from steelyard.errors import EngineUnavailableError
from steelyard.ledger.money import from_usd
from steelyard.serving.connected.declared import read_file, write_file
from steelyard.serving.judge.process import MODULE
from steelyard.serving.judge_setting import declare_judge
from steelyard.settings import InvalidSettingError, read_settings
from support.models.judges import smollm2
from support.servers.live_server import live_server
from support.waiting import wait_until

PATIENCE_S = 60

BODY = {
    "context": "Invoice 118 was paid twice.",
    "decisions": [
        {"id": "paid", "kind": "binary", "question": "Was it paid?"},
        {"id": "team", "question": "Which team?", "outcomes": ["billing", "sales"]},
    ],
}


def judges():
    """Return the ids of the judges' processes that this one has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if MODULE.encode() in words and int(parent) == os.getpid():
                found.append(int(process.name))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    settings = {"home": home, "judge": smollm2(), "engine": "hashing", "threads": 1}
    declare_judge(read_settings(settings, environ={}))
    file = read_file(home)
    file.models["judge"] = msgspec.structs.replace(file.models["judge"], price_in="1")
    write_file(home, file)
    with live_server(**settings, jobs="off", accounts="on", prices="hashing=1000") as server:
        account = server.services.accounts.create_account("payer")
        server.services.accounts.add_credit(account.id, from_usd("50"))
        key = server.services.accounts.create_key(account=account.id).secret
        options = ClientOptions(server.url, api_key=key, max_retries=0)
        with Client(options) as client:
            yield SimpleNamespace(options=options, client=client)


def test_the_route_asks_the_judge_every_yes_no(server):
    answer = server.client.decide(**BODY, model="auto")
    assert [entry.model for entry in answer.decisions["paid"].route] == ["hashing", "judge"]
    assert answer.decisions["paid"].calibration is UNSET  # nobody gave an opposite
    assert answer.decisions["team"].route[0].model == "hashing"


@pytest.mark.parametrize(
    "n_kills", [pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_kills_are_failures_that_a_caller_can_try_again(server, n_kills):
    over = threading.Event()
    wrong, answered = [], []
    n_charged = server.client.account.usage().total.calls

    def keep_asking(fallback):
        with Client(server.options) as client:
            while not over.is_set():
                try:
                    answer = client.decide(**BODY, model="judge", fallback=fallback)
                    answered.append(answer.model)
                except EngineUnavailableError:
                    over.wait(0.2)
                except Exception as error:  # noqa: BLE001  it is what the test looks for
                    wrong.append(error)

    with ThreadPoolExecutor(2) as pool:
        clients = [pool.submit(keep_asking, fallback) for fallback in ("none", "auto")]
        for _ in range(n_kills):
            wait_until(judges, PATIENCE_S)
            os.kill(judges()[0], signal.SIGKILL)
            n_before = answered.count("judge")
            wait_until(lambda n=n_before: wrong or answered.count("judge") > n, PATIENCE_S)
        over.set()
        for client in clients:
            client.result()
    assert not wrong
    assert set(answered) <= {"judge", "hashing"}
    # What was asked again in the next process is charged once, and a failure not at all.
    assert server.client.account.usage().total.calls - n_charged == len(answered)


def test_a_home_has_the_judge_and_its_route_once(tmp_path):
    settings = read_settings({"home": tmp_path, "judge": smollm2()}, environ={})
    declare_judge(settings)
    file = read_file(tmp_path)
    assert file.models["judge"].file == str(smollm2())
    assert file.routes["auto"].models == ["steelyard-base-2", "judge"]
    file.models["judge"] = msgspec.structs.replace(file.models["judge"], concurrency=1)
    write_file(tmp_path, file)
    declare_judge(settings)
    assert read_file(tmp_path) == file


@pytest.mark.slow
def test_a_file_that_is_no_model_keeps_the_server_from_starting(tmp_path):
    (tmp_path / "notes.gguf").write_text("no model")
    with pytest.raises(InvalidSettingError, match="not a GGUF file"):
        declare_judge(
            read_settings({"home": tmp_path, "judge": tmp_path / "notes.gguf"}, environ={})
        )
