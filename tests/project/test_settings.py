"""Settings: precedence, refusals, and no other reads of the environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from steelyard.scoring.assets import AUTO, ENGINES
from steelyard.scoring.shipped import HASHING
from steelyard.settings import (
    SETTINGS,
    InvalidSettingError,
    Settings,
    read_server_settings,
    read_settings,
)
from support.tree.repository import PACKAGE, RECIPE, copied_tree, python_files


def test_defaults_are_the_tables():
    settings = read_settings(environ={})
    assert {s.name: getattr(settings, s.name) for s in SETTINGS} == {
        s.name: s.default for s in SETTINGS
    }
    assert [s.name for s in SETTINGS] == list(Settings.__dataclass_fields__)


def test_settings_with_secrets_are_not_shown():
    url = "postgresql+psycopg://steelyard:hunter2@db/state"
    settings = read_settings({"state_url": url, "api_key": "hunter2"}, environ={})
    assert settings.state_url == url
    assert "hunter2" not in repr(settings)


def test_an_override_wins_over_the_environment_over_the_default():
    environ = {"STEELYARD_PORT": " 9000 ", "STEELYARD_THREADS": " "}
    assert read_settings(environ=environ).port == 9000
    assert read_settings(environ=environ).threads == 0
    assert read_settings({"port": 9001, "threads": None}, environ=environ).port == 9001


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        ({}, "", 0),
        ({}, "7", 7),
        ({"public_requests_per_minute": 8}, "7", 8),
        ({"accounts": "on"}, "", 120),
        ({"trusted_proxies": "127.0.0.1"}, "", 120),
    ],
)
def test_only_a_server_that_others_call_begins_with_bounds(monkeypatch, given, variable, expected):
    monkeypatch.setenv("STEELYARD_PUBLIC_REQUESTS_PER_MINUTE", variable)
    assert read_server_settings(given).public_requests_per_minute == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine", "abacus"),
        ("port", "http"),
        ("port", "-1"),
        ("port", "65536"),
        ("threads", "1.5"),
        ("deadline_s", "nan"),
        ("deadline_s", "inf"),
        ("deadline_s", "0"),
        ("max_queue", "0"),
        ("body_bytes", "1"),
    ],
)
def test_a_value_that_cannot_be_used_names_its_variable(name, value):
    with pytest.raises(InvalidSettingError, match=f"STEELYARD_{name.upper()}"):
        read_settings(environ={f"STEELYARD_{name.upper()}": value})


def test_engines_are_those_that_can_be_loaded():
    [engine] = [setting for setting in SETTINGS if setting.name == "engine"]
    assert set(engine.choices) == {AUTO, HASHING, *ENGINES}


def test_an_unknown_override_is_refused():
    with pytest.raises(InvalidSettingError, match="colour"):
        read_settings({"colour": "red"}, environ={})


def test_only_settings_reads_the_environment():
    readers = [
        path.name
        for path in python_files(PACKAGE, RECIPE)
        if re.search(r"os\.(environ|getenv)", path.read_text(encoding="utf-8"))
    ]
    assert readers == ["settings.py"]


#: Asks everything that knows settings about a made-up one.
ASK = """
import click, tables
from steelyard.cli.options import setting_option
from steelyard.settings import InvalidSettingError, read_settings

assert read_settings(environ={}).trees == 3
assert read_settings(environ={"STEELYARD_TREES": "5"}).trees == 5
try:
    read_settings(environ={"STEELYARD_TREES": "0"})
except InvalidSettingError as error:
    print(error)
command = click.Command("plant", params=[])
print(setting_option("trees")(command).params[0].help)
print(tables.settings_table())
"""


def test_a_made_up_setting_is_one_field(tmp_path):
    tree = copied_tree(tmp_path, "docs/tools")
    path = tree / "server" / "steelyard" / "settings.py"
    text = path.read_text(encoding="utf-8")
    field = '    trees: int = _setting(3, "Trees of the forest.", minimum=1)\n'
    path.write_text(text.replace("    host: str", f"{field}    host: str", 1), encoding="utf-8")
    folders = os.pathsep.join([str(tree / "server"), str(tree / "docs" / "tools")])
    shown = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    refused, offered, *table = shown.splitlines()
    assert refused == "The setting trees (STEELYARD_TREES) is '0'; give at least 1."
    assert offered == "Trees of the forest. [$STEELYARD_TREES; default: 3]"
    assert "| `STEELYARD_TREES` | `3` | Trees of the forest. |" in table
