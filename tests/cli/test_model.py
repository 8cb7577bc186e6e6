"""``steelyard model show``."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import httpx
import pytest

from support.datasets.dataset_rows import make_rows
from support.models.exported_models import write_exported
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until


def test_shows_name_engine_and_tokenizer(run):
    result = run("model", "show", "--json")
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown.keys() == {"name", "engine", "card", "tokenizer", "manifest"}
    assert shown["engine"] == "hashing"


def test_the_text_has_the_same_facts(run):
    shown = json.loads(run("model", "show", "--json").stdout)
    text = run("model", "show").stdout
    for fact in (shown["name"], shown["engine"], shown["tokenizer"]["sha256"]):
        assert fact in text


class TestConnected:
    """Models of other servers: added, shown, checked, calibrated and removed."""

    @pytest.fixture
    def far(self):
        with remote_model() as far:
            yield far

    @pytest.fixture
    def ask(self, run, tmp_path):
        home = tmp_path / "home"
        return lambda *words: run("model", *words, "--home", str(home))

    def test_one_is_added_once_listed_and_removed(self, ask, far):
        given = ["add", "far", "--wire", "chat", "--url", far.url]
        assert ask(*given).exit_code == 0
        assert "--replace" in ask(*given).stderr
        assert ask(*given, "--replace", "--price-in", "0.15").exit_code == 0
        assert far.url in ask("list").stdout
        assert json.loads(ask("list", "--json").stdout)["far"]["price_in"] == "0.15"
        assert ask("remove", "far").exit_code == 0
        assert json.loads(ask("list", "--json").stdout) == {}
        assert ask("remove", "far").exit_code == 2
        assert far.asked == []

    @pytest.mark.parametrize(
        "words",
        [
            ["a b", "--wire", "chat", "--url", "http://host"],
            ["a", "--wire", "telepathy", "--url", "http://host"],
            ["a", "--wire", "chat", "--url", "ftp://host"],
            ["a", "--wire", "chat"],
            ["a", "--wire", "hub"],
            ["a", "--wire", "chat", "--url", "http://host", "--key-env", "NOT_SET_ANYWHERE"],
            ["steelyard-base-2", "--wire", "chat", "--url", "http://host"],
        ],
    )
    def test_models_that_cannot_be_asked_are_not_added(self, ask, words):
        assert ask("add", *words).exit_code == 2
        assert json.loads(ask("list", "--json").stdout) == {}

    def test_an_export_needs_the_training_packages(self, ask, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        monkeypatch.delitem(sys.modules, "steelyard.training.hub", raising=False)
        refused = ask("add", "far", "--wire", "hub", "--model", str(tmp_path))
        assert (refused.exit_code, "steelyard[train]" in refused.stderr) == (1, True)
        assert json.loads(ask("list", "--json").stdout) == {}

    def test_an_exported_model_is_checked_as_any(self, ask, tmp_path, monkeypatch):
        # Exporting is tested in tests/training/test_hub.py, where PyTorch is.
        folder = write_exported(tmp_path / "home" / "hub" / "1", "entailment")
        stand_in = SimpleNamespace(HubExportError=ValueError, export=lambda source, home: folder)
        monkeypatch.setitem(sys.modules, "steelyard.training.hub", stand_in)
        added = ask("add", "far", "--wire", "hub", "--model", "tiny/nli")
        assert added.exit_code == 0, added.stderr
        assert "hub/1" in ask("list").stdout
        checked = json.loads(ask("check", "far", "--json").stdout)
        assert checked["answered"] == checked["asked"]
        assert checked["flips_when_reordered"] == 0
        ask("add", "again", "--wire", "hub", "--model", "tiny/nli")
        ask("remove", "far")
        assert folder.exists()
        ask("remove", "again")
        assert not folder.exists()

    def test_a_check_says_how_it_answers(self, ask, far):
        ask("add", "far", "--wire", "chat", "--url", far.url)
        checked = ask("check", "far", "--json")
        assert checked.exit_code == 0, checked.stderr
        report = json.loads(checked.stdout)
        assert report["answered"] == report["asked"] == len(far.asked)
        assert 0 < report["flips_when_reordered"] <= 1  # it prefers what comes first
        assert report["failures"] == []
        assert "32 of 32" in ask("check", "far").stdout
        far.fault = "status 400"
        failed = ask("check", "far")
        assert failed.exit_code == 1
        assert "status 400" in failed.stderr

    def test_a_calibration_is_kept_where_it_is_better(self, ask, far, tmp_path):
        ask("add", "far", "--wire", "chat", "--url", far.url)
        with live_server() as server:
            rows = make_rows(60)
            sides = {"training": rows[:30], "evaluation": rows[30:]}
            made = httpx.post(
                f"{server.url}/v1/datasets", json={"name": "rows", **sides}, timeout=60
            ).json()
            words = ["calibrate", "far", made["id"], "--url", server.url]
            fitted = ask(*words, "--json")
            assert fitted.stdout, (fitted.stderr, fitted.exception)
            report = json.loads(fitted.stdout)
            kept = json.loads(ask("list", "--json").stdout)["far"].get("calibrations", [])
            is_better = report["log_loss_after"] < report["log_loss_before"]
            assert (fitted.exit_code, len(kept)) == ((0, 1) if is_better else (1, 0))
            assert kept == [] or kept[0]["dataset"] == made["id"]
            few = ask("calibrate", "far", made["id"], "--rows", "3", "--url", server.url)
            assert few.exit_code == 2
            far.fault = "status 400"
            failed = ask(*words)
            assert failed.exit_code == 2
            assert "the first of them so:" in failed.stderr
            assert "status 400" in failed.stderr

    def test_a_running_server_has_it_within_a_second(self, run, far, tmp_path):
        home = str(tmp_path / "home")
        with live_server(home=home) as server:
            run("model", "add", "far", "--wire", "chat", "--url", far.url, "--home", home)

            def names():
                return [one["id"] for one in httpx.get(f"{server.url}/v1/models").json()["data"]]

            wait_until(lambda: "far" in names())
            body = {
                "context": "x",
                "decisions": [{"id": "a", "question": "b", "outcomes": ["c", "d"]}],
            }
            answer = httpx.post(f"{server.url}/v1/decide", json={**body, "model": "far"}).json()
            assert answer["model"] == "far"
            run("model", "remove", "far", "--home", home)
            wait_until(lambda: "far" not in names())
