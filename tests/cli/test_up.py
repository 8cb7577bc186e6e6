"""``steelyard up``: the server, and the sample datasets of a first run."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import httpx
import pytest

import steelyard
from steelyard.cli import first_operator, up
from steelyard.cli.samples import LOADED, SAMPLES, load_samples, sample_file
from steelyard.settings import read_settings
from support.servers.serving import ENVIRONMENT, serving
from support.tree.repository import ROOT, read_pyproject
from support.waiting import wait_until


def names_at(url: str) -> list[str]:
    with steelyard.connect(url) as client:
        return sorted(dataset.name for dataset in client.datasets.list().data)


def is_loaded(home: Path) -> bool:
    return all((home / LOADED / name).exists() for name in SAMPLES)


def test_the_first_run_loads_the_samples_and_a_later_one_leaves_them_be(tmp_path):
    with serving(tmp_path, "--no-workbench", subcommand="up") as (process, address):
        wait_until(lambda: is_loaded(tmp_path))
        assert names_at(address["url"]) == sorted(SAMPLES)
        with steelyard.connect(address["url"]) as client:
            datasets = {dataset.name: dataset for dataset in client.datasets.list().data}
            assert datasets["support_triage"].method == "sft"
            assert datasets["reply_action"].method == "reward"
            client.datasets.delete(datasets["reply_action"].id)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Loaded the sample dataset support_triage: 7" in stdout
    with serving(tmp_path, "--no-workbench", subcommand="up") as (_, address):
        load_samples(address["url"], tmp_path)
        assert names_at(address["url"]) == ["support_triage"]


def test_on_a_terminal_a_panel_says_where_everything_is_and_requests_are_quiet(tmp_path):
    ours, theirs = pty.openpty()
    command = [
        *(sys.executable, "-m", "steelyard", "up", "--no-samples", "--no-workbench"),
        *("--port", "0", "--home", str(tmp_path)),
    ]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=ENVIRONMENT) as process:
        os.close(theirs)
        shown = ""
        while "/v1/decide" not in shown or not shown.endswith("\n"):
            shown += os.read(ours, 4096).decode()
        url = json.loads((tmp_path / "serve.json").read_bytes())["url"]
        assert httpx.get(f"{url}/v1/nothing").status_code == 404
        process.send_signal(signal.SIGINT)
        while "Stopped." not in shown:
            shown += os.read(ours, 4096).decode()
        assert process.wait(timeout=30) == 0
    os.close(ours)
    plain = click.unstyle(shown)
    assert f"API        {url}" in plain
    assert f"Data       {tmp_path}" in plain
    assert "Yes/no     steelyard model pull reader" in plain
    assert "Stop       Ctrl-C" in plain
    assert plain.count("Stopped.") == 1
    assert "PRODUCTION" not in plain
    assert '"level"' not in plain
    assert "v1/nothing" not in plain


@pytest.mark.slow
def test_a_crash_before_the_mark_does_not_load_twice(tmp_path):
    with serving(tmp_path, "--no-samples", "--no-workbench", subcommand="up") as (_, address):
        assert names_at(address["url"]) == []
        load_samples(address["url"], tmp_path)
        (tmp_path / LOADED / "support_triage").unlink()
        load_samples(address["url"], tmp_path)
        assert names_at(address["url"]) == sorted(SAMPLES)
        assert is_loaded(tmp_path)


@pytest.mark.slow
def test_with_accounts_nothing_is_loaded_and_it_says_so(tmp_path):
    with serving(tmp_path, "--accounts", "on", "--no-workbench", subcommand="up") as (process, _):
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=30)
        assert "Accounts are on" in stdout
    assert not (tmp_path / LOADED).exists()


def sign_in(process, url, email):
    """Sign in as a user who sees the server's terminal; return the answer."""
    with httpx.Client(base_url=url, headers={"X-Steelyard-Console": "1"}) as browser:
        begun = browser.post("/v1/auth/email", json={"email": email})
        assert begun.status_code == 202, begun.text
        for line in process.stderr:
            if re.fullmatch(r"[0-9A-Z]{4}-[0-9A-Z]{4}", line.strip()):
                break
        body = {"challenge_id": begun.json()["challenge_id"], "code": line.strip()}
        return browser.post("/v1/auth/email/verify", json=body).json()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_first_run_ends_with_an_operator_signed_in_without_mail(tmp_path):
    given = ("--accounts", "on", "--no-workbench", "--operator", "Sam@Example.org")
    with serving(tmp_path, *given, subcommand="up") as (process, address):
        who = sign_in(process, address["url"], "sam@example.org")
        assert who["user"]["is_operator"] is True
        assert [(one["id"], one["role"]) for one in who["accounts"]] == [("local", "owner")]
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=30)
        assert "Sign in as sam@example.org, with the code that comes on this terminal" in stdout
    with serving(tmp_path, *given[:3], subcommand="up") as (process, _):
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=30)
        assert "Sign in as" not in stdout


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--accounts", "on", "--operator", "sam"), "not an e-mail address"),
        (("--operator", "sam@example.org"), "--accounts on"),
    ],
)
def test_an_operator_that_cannot_be(tmp_path, given, told):
    with pytest.raises(click.UsageError, match=told):
        up.command.main(["--home", str(tmp_path), *given], standalone_mode=False)


def test_a_first_run_on_a_terminal_asks_who_is_the_operator(tmp_path, monkeypatch):
    settings = read_settings({"home": str(tmp_path), "accounts": "on"}, environ={})
    assert "account operator" in first_operator.first_operator(settings, None)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    answers = iter(["sam", "sam@example.org"])
    monkeypatch.setattr(click, "prompt", lambda *_: next(answers))
    told = first_operator.first_operator(settings, None)
    assert told == "sam@example.org, with the code that comes on this terminal"
    assert first_operator.first_operator(settings, None) is None


def test_a_setting_names_the_first_owner_and_no_second(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_HOME", str(tmp_path))

    def start(first_owner: str, accounts: str = "on") -> str:
        given = {"home": str(tmp_path), "accounts": accounts, "first_owner": first_owner}
        return first_operator.first_operator(read_settings(given, environ={}), None) or ""

    with pytest.raises(click.UsageError, match="first_owner"):
        start("sam@example.org", accounts="off")
    with pytest.raises(click.BadParameter, match="not an e-mail address") as refused:
        start("sam")
    assert refused.value.param_hint == "first_owner"
    assert start("sam@example.org").startswith("sam@example.org, with the code")
    assert start("mia@example.org") == ""


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_found_and_are_in_the_wheel(name):
    assert sample_file(name) == ROOT / "datasets" / f"{name}.jsonl"
    included = read_pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included[f"datasets/{name}.jsonl"] == f"steelyard/assets/samples/{name}.jsonl"
