"""The command itself: help, version, and how little it loads to give them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from operator import attrgetter
from unittest.mock import MagicMock, Mock, call

import click
import pytest
from click.testing import CliRunner

from steelyard.cli.failures import show_failure, without_routes
from steelyard.cli.main import COMMANDS, main
from steelyard.client import NoAnswerInTimeError
from steelyard.errors import (
    FamilyAnswersError,
    InvalidRequestError,
    NotEnoughEvaluationDataError,
    StorageUnavailableError,
    Violation,
)
from steelyard.version import __version__
from support.servers.serving import ENVIRONMENT

#: Packages that a command waits for when it imports them.
HEAVY = {
    *("bokeh", "httpx", "lightgbm", "msgspec", "numpy", "onnxruntime", "pandas", "panel", "polars"),
    *("pyarrow", "rich", "sanic", "scipy", "sklearn", "sqlalchemy", "tokenizers", "torch"),
}


def all_commands():
    context = click.Context(main, info_name="steelyard")
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        yield name, command
        for child, child_command in getattr(command, "commands", {}).items():
            yield f"{name} {child}", child_command


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("account",),
        ("decide",),
        ("doctor",),
        ("key",),
        ("key", "create"),
        ("serve",),
        ("lint",),
        ("model",),
        ("model", "show"),
    ],
)
def test_help_shows_examples(run, arguments):
    result = run(*arguments, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"steelyard {' '.join(arguments)}".strip() in result.stdout


def test_listed_lines_are_the_commands_own():
    context = click.Context(main, info_name="steelyard")
    for name, summary in COMMANDS.items():
        command = main.get_command(context, name)
        assert command.name == name
        assert summary.rstrip(".").split()[0] == (command.help or "").split()[0]


def test_every_option_has_help():
    for name, command in all_commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}"


def test_an_unknown_command_is_refused(run):
    result = run("weigh")
    assert result.exit_code == 2
    assert "weigh" in result.stderr


@pytest.mark.parametrize(
    ("name", "meant"),
    [("decyde", "decide"), ("datasets", "dataset"), ("SERVE", "serve"), ("xyzzy", None)],
)
def test_a_near_miss_of_a_command_names_it(run, name, meant):
    result = run(name)
    assert result.exit_code == 2
    said = result.stderr.partition("Did you mean ")[2].strip()
    assert said == (f"{meant}?" if meant else "") or said.startswith(f"{meant} or ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(run, shell, monkeypatch):
    script = run("completion", shell)
    assert script.exit_code == 0
    assert f"_STEELYARD_COMPLETE={shell}_complete" in script.stdout
    assert "steelyard completion" in run("--help").stdout
    monkeypatch.setenv("_STEELYARD_COMPLETE", f"{shell}_complete")
    for words, found in (("steelyard deci", "decide"), ("steelyard decide --con", "--context")):
        monkeypatch.setenv("COMP_WORDS", words)
        last = words.split()[-1]
        monkeypatch.setenv("COMP_CWORD", last if shell == "fish" else str(len(words.split()) - 1))
        assert found in CliRunner().invoke(main, [], prog_name="steelyard").stdout


LISTS = {
    "/v1/families": "steelyard family list",
    "/v1/fine-tuning/jobs": "steelyard job list",
    "/v1/evaluations": "steelyard evaluate list",
    "/v1/integrations/webhooks": "steelyard webhook list",
    "/v1/labeling/sources": "steelyard labeling sources",
    "/v1/prompt-tuning/jobs": "steelyard tune list",
}


def test_an_error_in_the_shell_names_no_route():
    """Whichever route a server's sentence names, the shell names a command that there is."""
    context = click.Context(main, info_name="steelyard")
    operations = json.loads(
        files("steelyard.http").joinpath("openapi.json").read_text(encoding="utf-8")
    )["paths"]
    for path, methods in operations.items():
        if not path.startswith("/v1/"):
            continue
        for method in methods:
            shown = without_routes(f"It is none; see {method.upper()} {path}, or {path}.")
            assert "/v1" not in shown
            first = shown.removeprefix("It is none; see ").partition(",")[0]
            if first != "the workbench":
                _, name, *child = first.split()
                command = main.get_command(context, name)
                assert command is not None
                assert not child or child[0] in command.commands, first
    for path, command in LISTS.items():
        assert without_routes(f"See GET {path}.") == f"See {command}."
    address = "No answer from https://models.example/v1/chat; check it."
    assert without_routes(address) == address


def test_version(run):
    assert run("--version").stdout == f"steelyard, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ("--help", set()),
        ("--version", set()),
        ("doctor --help", set()),
        ("up --help", set()),
        ("model list", {"msgspec", "sqlalchemy"}),
        ("account --help", set()),
        ("dataset list --url http://127.0.0.1:9", {"msgspec", "httpx"}),
        ("key list", {"msgspec", "sqlalchemy"}),
    ],
)
def test_commands_load_only_needed_modules(arguments, allowed, tmp_path):
    script = (
        "import sys, json\n"
        "from steelyard.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:], standalone_mode=False)\n"
        "except Exception:\n"
        "    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments.split()],
        env={**ENVIRONMENT, "STEELYARD_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert loaded & HEAVY == allowed
    assert not any(name.startswith("steelyard.cli.decide") for name in loaded)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_an_output_of_any_encoding_takes_any_text(encoding, tmp_path):
    names = {"d\u00e9j\u00e0": None, "\u4e2d\u6587": None, "\U0001f600": None}
    request = {"context": "x", "decisions": [{"id": "o", "question": "?", "outcomes": names}]}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    for command in ("decide", "lint"):
        shown, as_json = (
            subprocess.run(
                [sys.executable, "-m", "steelyard", command, str(path), *given],
                env={**ENVIRONMENT, "PYTHONIOENCODING": encoding, "COLUMNS": "200"},
                capture_output=True,
                check=False,
            )
            for given in ((), ("--json",))
        )
        assert (shown.returncode, as_json.returncode) == (0, 0), shown.stderr + as_json.stderr
        answered = json.loads(as_json.stdout)
        if command == "decide":
            assert answered["decisions"]["o"]["probabilities"].keys() == names.keys()
            text = shown.stdout.decode(encoding)
            assert ("\u4e2d" if encoding == "utf-8" else r"\u4e2d\u6587") in text


@pytest.mark.parametrize("error_class", [InvalidRequestError, NotEnoughEvaluationDataError])
def test_violations_of_a_server_are_listed(error_class, capsys):
    details = [
        {"path": ["body", "decisions", number, "id"], "message": f"Wrong {number}.", "type": "x"}
        for number in range(25)
    ]
    show_failure(error_class("Wrong 0. In all, 24 more.", details=[*details, {"families": ["a"]}]))
    told = capsys.readouterr().err
    assert "  decisions[3].id: Wrong 3.\n" in told
    assert told.endswith("  and 5 more\n")


def test_a_place_and_a_message_are_said_once(capsys):
    message = "url must be https://HOST."
    details = [{"path": ["body", "url"], "message": message, "type": "x"}]
    show_failure(InvalidRequestError(message, details=details))
    show_failure(
        NotEnoughEvaluationDataError("Add rows.", details=[{**details[0], "message": "Add rows."}])
    )
    shown = capsys.readouterr().err.splitlines()
    assert shown[1:] == [
        "  url must be https://HOST.",
        "Error (not_enough_evaluation_data): Add rows.",
    ]


def test_a_time_that_is_none_is_a_mistake_in_the_call(run):
    refused = run("decisions", "export", "--since", "yesterday")
    assert refused.exit_code == 2
    assert "write 2026-11-30 or 2026-11-30T08:00:00" in refused.stderr


def test_a_refused_family_lists_places_once_and_obstacles(run, monkeypatch):
    details = [
        {"path": ["body", "steps"], "message": "Give 1 or more.", "type": "x"},
        {"answering": ["router"]},
    ]
    refused = FamilyAnswersError("It answers.", details=details)
    monkeypatch.setattr("steelyard.client.parts.FamilyResource.list", Mock(side_effect=refused))
    told = run("family", "list", "--url", "http://127.0.0.1:9").stderr.splitlines()
    assert told[1:] == ["  steps: Give 1 or more.", "  answering: router"]


@pytest.mark.parametrize(
    ("line", "name", "given"),
    [
        ("job follow ftj_1 --timeout 2", "jobs.wait", call("ftj_1", timeout_s=2)),
        ("labeling follow lab_1 --timeout 2", "labeling.wait", call("lab_1", timeout_s=2)),
        ("map follow map_1 --timeout 2", "maps.wait", call("map_1", timeout_s=2)),
        ("tune follow pt_1 --timeout 2", "prompt_tuning.wait", call("pt_1", timeout_s=2)),
        (
            "family switch a on --switch-off b",
            "families.switch",
            call("a", True, switch_off=("b",)),
        ),
        ("family switch a@1 on", "models.switch", call("a@1", True, switch_off=None)),
        (
            "family keep-warm a@1 on --switch-off b --switch-off c@2",
            "models.keep_warm",
            call("a@1", True, max_price_usd=None, switch_off=("b", "c@2")),
        ),
        (
            "labeling start src_1 --weighting probabilities",
            "labeling.create",
            call(
                "src_1",
                teacher_models=None,
                decisions=None,
                name=None,
                weighting="probabilities",
                max_price_usd=None,
            ),
        ),
        (
            "labeling finalize lab_1 --row 3 --row 5",
            "labeling.finalize",
            call("lab_1", [3, 5], evaluation_fraction=None),
        ),
        (
            "decision compare desk 2 --stored 7",
            "named_decisions.estimate_comparison",
            call("desk", 2, against="production", traffic_s=None, rows=None, stored=7),
        ),
    ],
)
def test_options_reach_the_call_whose_lateness_is_status_3(run, monkeypatch, line, name, given):
    client = MagicMock()
    client.named_decisions.version.side_effect = lambda _, at: Mock(version=at)
    asked = attrgetter(name)(client)
    asked.side_effect = NoAnswerInTimeError("It took too long.")
    monkeypatch.setattr("steelyard.client.Client.__enter__", lambda _: client)
    assert run(*line.split()).exit_code == 3
    assert asked.mock_calls == [given]


def test_a_note_is_printed_with_violations_and_at_ctrl_c(run, capsys, monkeypatch):
    found = InvalidRequestError(violations=[Violation(("body", "a"), "Remove a.", "x")])
    found.add_note("The dataset ds_1 has rows.")
    show_failure(found)
    assert "  a: Remove a.\n  The dataset ds_1 has rows.\n" in capsys.readouterr().err
    stopped = KeyboardInterrupt()
    stopped.add_note("The dataset ds_2 has rows.")
    monkeypatch.setattr("steelyard.app.deployment.open_deployment", Mock(side_effect=stopped))
    done = run("decide", "--context", "x", "--question", "y", "--kind", "binary")
    assert done.stderr == "Stopped.\n  The dataset ds_2 has rows.\n"
    assert done.exit_code == 130


def test_work_done_before_a_failure_is_reported(capsys):
    error = StorageUnavailableError("The disk is full.")
    error.add_note("The dataset ds_1 has the rows sent before: version 1.")
    show_failure(error)
    told = capsys.readouterr().err
    assert "storage_unavailable" in told
    assert "The dataset ds_1 has the rows sent before" in told
