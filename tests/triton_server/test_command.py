"""The command's files and its refusals, without a server."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from steelyard.cli import triton as module
from steelyard.cli.main import main
from steelyard.errors import EngineUnavailableError
from steelyard.settings import read_settings
from steelyard.triton import environment, sources
from steelyard.triton.parity import ModelComparison
from steelyard.triton.repository import ExportOptions, write_model
from steelyard.triton.sources import Exportable, TunedModel
from support.triton.triton_hosting import write_lora_artifact

#: In use, and its base model is not here.
ORPHAN = TunedModel("ft-ftj_test", "router@1", "gone", "0" * 64)


@pytest.fixture
def run(tmp_path: Path, random_folder: Path, monkeypatch):
    """Run the command on a home of its own with the random model beside the shipped one."""
    monkeypatch.setenv("STEELYARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STEELYARD_BASE_MODELS", f"small={random_folder}")

    def run_command(*arguments: str):
        return CliRunner().invoke(main, ["triton", *arguments], terminal_width=120)

    return run_command


def test_export_writes_once_and_then_leaves_alone(run, tmp_path):
    folder = str(tmp_path / "models")
    first = run("export", folder, "--model", "small", "--engine", "onnxruntime-float32")
    assert first.exit_code == 0, first.output
    assert first.output.startswith("small: written (float32, ")
    second = run("export", folder, "--model", "small", "--engine", "onnxruntime-float32")
    assert second.output.startswith("small: unchanged (float32, ")


def test_export_for_a_gpu_names_the_settings_of_the_service(run, tmp_path):
    done = run("export", str(tmp_path / "models"), "--model", "small", "--target", "gpu")
    assert done.exit_code == 0, done.output
    assert "STEELYARD_ENGINE=onnxruntime-float32" in done.output
    assert (tmp_path / "models" / "small" / "1" / "model.onnx").is_file()


def test_prune_removes_unused_models(run, tmp_path, base, monkeypatch):
    folder = tmp_path / "models"
    write_model(folder, write_lora_artifact(tmp_path / "artifact", base), ExportOptions())
    monkeypatch.setenv("STEELYARD_BASE_MODELS", "")
    done = run("export", str(folder), "--prune")
    assert "ft-ftj_test: removed" in done.output
    assert [path.name for path in folder.iterdir()] == ["steelyard-base-2"]


def test_prune_keeps_used_models_that_cannot_be_made_now(run, tmp_path, base, monkeypatch):
    folder = tmp_path / "models"
    write_model(folder, write_lora_artifact(tmp_path / "artifact", base), ExportOptions())
    monkeypatch.setattr(sources, "tuned_models", lambda _: [ORPHAN])
    monkeypatch.setenv("STEELYARD_BASE_MODELS", "")
    done = run("export", str(folder), "--prune")
    assert done.exit_code == 0, done.output
    assert "ft-ftj_test: left out. Its base model gone is not here." in done.output
    assert {path.name for path in folder.iterdir()} == {"steelyard-base-2", "ft-ftj_test"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("router@1", "ft-ftj_test: left out. Its base model gone is not here."),
        ("double", "double: left out. It is the test double"),
    ],
)
def test_a_model_that_is_asked_for_and_not_written_is_a_failure(
    run, tmp_path, monkeypatch, name, said
):
    monkeypatch.setattr(sources, "tuned_models", lambda _: [ORPHAN])
    monkeypatch.setenv("STEELYARD_BASE_MODELS", "double=hashing")
    done = run("export", str(tmp_path / "models"), "--model", name)
    assert (done.exit_code, said in done.output) == (1, True), done.output
    assert done.output.count("left out") == 1
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["export", "{}", "--model", "nope"], 2, "There is no model 'nope' in use here"),
        (["export", "{}", "--backend", "tensorrt"], 2, "--backend is for --target gpu"),
        (["export", "{}", "--prune", "--model", "small"], 2, "leave --model out"),
        (
            ["export", "{}", "--target", "gpu", "--engine", "onnxruntime-int8"],
            3,
            "runs on the CPU alone",
        ),
        (["export", "/proc/models", "--model", "small"], 3, "cannot be written"),
        (["check", "http://127.0.0.1:8001"], 2, "Invalid value for URL: 'http://127.0.0.1:8001'"),
        (["check", ""], 2, "triton://"),
        (["up", "--port", "70000"], 2, "not in the range"),
        (["up", "--tls-certificate", "/etc/hostname"], 2, "both --tls-certificate and --tls-key"),
        (["up", "--tls-clients", "/nowhere"], 2, "does not exist"),
    ],
)
def test_impossible_commands_are_refused(run, tmp_path, arguments, status, said):
    done = run(*(argument.format(tmp_path / "models") for argument in arguments))
    assert (done.exit_code, said in done.output) == (status, True), done.output


@pytest.mark.parametrize(
    ("option", "path"),
    [("--home", "my home"), ("--repository", "a&b"), ("--environment", "$HOME")],
)
def test_a_path_that_a_shell_would_change_is_refused_before_an_installation(
    run, tmp_path, monkeypatch, option, path
):
    built: list[object] = []
    monkeypatch.setattr(environment, "check_machine", lambda: None)
    monkeypatch.setattr(environment, "build_environment", lambda *_: built.append(None))
    done = run("up", option, str(tmp_path / path))
    assert (done.exit_code, built) == (2, []), done.output
    assert f"Triton hands {tmp_path / path}" in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


def test_up_loads_the_models_that_are_named_or_the_base_models(run, monkeypatch):
    hosted = Mock(side_effect=EngineUnavailableError("It does not start."))
    monkeypatch.setattr("steelyard.triton.host.TritonHost", hosted)
    monkeypatch.setattr(environment, "check_machine", lambda: None)
    monkeypatch.setattr(environment, "build_environment", lambda *_: None)
    monkeypatch.setattr(module._Following, "write", lambda _: ["small"])
    for options, loaded in (((), ["small"]), (("--load", "a", "--load", "b"), ("a", "b"))):
        assert run("up", *options).exit_code == 3
        assert hosted.call_args.kwargs["load"] == loaded


def test_check_reports_an_absent_server(run):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = run("check", f"triton://127.0.0.1:{unused.getsockname()[1]}")
    assert done.exit_code == 3, done.output
    assert "Error (engine_unavailable)" in done.output


def test_check_shows_a_table_and_fails_for_one_that_differs(run, monkeypatch):
    found = [
        ModelComparison("a", "equal", "int8", 40, 1e-7, 1e-6, 2.5, 3.25),
        ModelComparison("b", "different", "int8", 40, 0.25, 1.0, 2.5, 3.25),
        ModelComparison("c", "unloaded"),
    ]
    monkeypatch.setattr("steelyard.triton.parity.check_server", lambda *_: found)
    done = run("check", "127.0.0.1:8001")
    assert done.exit_code == 1
    assert "0.25" in done.output
    told = run("check", "triton://127.0.0.1", "--json")
    assert told.exit_code == 1
    answer = json.loads(told.output)
    assert (answer["url"], answer["ok"]) == ("triton://127.0.0.1:8001", False)
    assert [one["verdict"] for one in answer["models"]] == ["equal", "different", "unloaded"]
    found[1:2] = []
    assert run("check", "127.0.0.1:8001").exit_code == 0


@pytest.fixture
def in_use(monkeypatch) -> set[str]:
    """The models in use, for a test to change."""
    in_use: set[str] = set()
    monkeypatch.setattr(module._Following, "_in_use", lambda _: frozenset(in_use))
    monkeypatch.setattr(module, "_FOLLOW_S", 0.0)
    return in_use


@pytest.fixture
def follow(run, tmp_path):
    return module._Following(read_settings(), tmp_path, ExportOptions())


@pytest.fixture
def written(monkeypatch) -> list[None]:
    """One entry for each time that models were written."""
    written: list[None] = []
    monkeypatch.setattr(module, "_write", lambda *_: written.append(None))
    return written


def test_models_that_come_into_use_are_written_and_trouble_is_reported_once(
    in_use, follow, written, monkeypatch, capsys
):
    follow()
    assert written == []
    in_use.add("ft-ftj_1")
    follow()
    follow()
    assert len(written) == 1

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(module, "_write", fail)
    in_use.add("ft-ftj_2")
    follow()
    follow()
    assert capsys.readouterr().err.count("the disk is full") == 1


def test_models_that_come_into_use_during_a_write_are_written_too(
    in_use, follow, written, monkeypatch
):
    def find(_: object) -> Exportable:
        in_use.add("ft-ftj_1")
        return Exportable()

    monkeypatch.setattr(sources, "find_sources", find)
    follow.write()
    follow()
    follow()
    assert len(written) == 2


def test_left_out_models_are_reported_once(in_use, follow, monkeypatch, capsys):
    in_use.add("ft-ftj_1")
    left_out = {"ft-ftj_1": "It is of another engine."}
    monkeypatch.setattr(sources, "find_sources", lambda _: Exportable(left_out=dict(left_out)))
    assert follow.write() == []
    in_use.add("ft-ftj_2")
    left_out["ft-ftj_2"] = "It is of other weights."
    follow()
    follow()
    assert capsys.readouterr().err.splitlines() == [
        "ft-ftj_1: left out. It is of another engine.",
        "ft-ftj_2: left out. It is of other weights.",
    ]
