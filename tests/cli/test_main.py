"""The command itself: help, version, and how little it loads to give them."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from steelyard.cli.failures import show_failure
from steelyard.cli.main import COMMANDS, main
from steelyard.errors import StorageUnavailableError
from steelyard.version import __version__


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
    for name, entry in COMMANDS.items():
        command = main.get_command(context, name)
        assert command.name == name
        assert entry.summary.rstrip(".").split()[0] == (command.help or "").split()[0]


def test_every_option_has_help():
    for name, command in all_commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}"


def test_an_unknown_command_is_refused(run):
    result = run("weigh")
    assert result.exit_code == 2
    assert "weigh" in result.stderr


def test_version(run):
    assert run("--version").stdout == f"steelyard, version {__version__}\n"


def test_help_and_version_load_nothing_heavy():
    script = (
        "import sys, json\n"
        "from steelyard.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "main(['--version'], standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stderr))
    heavy = {"torch", "sanic", "numpy", "onnxruntime", "tokenizers", "rich", "msgspec", "httpx"}
    assert loaded & heavy == set()
    assert not any(name.startswith("steelyard.cli.decide") for name in loaded)


def test_what_was_done_before_a_failure_is_told(capsys):
    error = StorageUnavailableError("The disk is full.")
    error.add_note("The dataset ds_1 has the rows sent before: version 1.")
    show_failure(error)
    told = capsys.readouterr().err
    assert "storage_unavailable" in told
    assert "The dataset ds_1 has the rows sent before" in told
