"""The README states what the code does: settings, errors, routes, and examples that run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess

import pytest

import steelyard
from repository import ROOT
from steelyard.api.app import ROUTES
from steelyard.bootstrap import open_deployment
from steelyard.cli.main import COMMANDS
from steelyard.decisions.lint.registry import RULES
from steelyard.errors import error_classes
from steelyard.services.lint import lint_dict
from steelyard.settings import SETTINGS, read_settings

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def rows(heading: str) -> dict[str, list[str]]:
    """Give the table under a heading: first cell (without marks) to the other cells."""
    section = README.split(f"\n{heading}\n")[1].split("\n## ")[0]
    table = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            first, *others = (cell.strip() for cell in line.strip("|").split(" | "))
            table[first.strip(" `")] = others
    return table


def test_settings_are_the_tables():
    table = rows("## Settings")
    assert list(table) == [setting.variable for setting in SETTINGS]
    for setting in SETTINGS:
        default, meaning = table[setting.variable]
        is_unset = setting.default is None or not str(setting.default)
        assert default == ("unset" if is_unset else f"`{setting.default}`")
        assert meaning.rstrip(" |") == setting.help


def test_errors_are_the_tables():
    table = rows("## Errors")
    assert {code: int(cells[0]) for code, cells in table.items()} == {
        code: cls.status for code, cls in error_classes().items()
    }


def test_lint_rules_are_the_registrys():
    table = rows("## Lint")
    assert {name: [cell.strip(" |") for cell in cells] for name, cells in table.items()} == {
        rule.name: [
            rule.severity,
            ", ".join(rule.kinds) if len(rule.kinds) < 3 else "all",
            rule.summary,
        ]
        for rule in RULES
    }
    assert list(table) == [rule.name for rule in RULES]


def test_the_readme_says_what_linting_its_request_finds():
    request, _ = (json.loads(block) for block in blocks("json"))
    [warning] = lint_dict(request)["warnings"]
    section = README.split("\n## Lint\n")[1].split("\n## ")[0]
    assert f"`{warning['rule']}` on `{warning['decision']}`" in section


def test_routes_and_commands_are_told():
    for route in ROUTES:
        assert f"`{route.method} {route.path}`" in README
    for name in COMMANDS:
        assert f"steelyard {name}" in README


@pytest.fixture(scope="module")
def answers():
    settings = read_settings({"engine": "hashing"}, environ={})
    with open_deployment(settings) as deployment:
        yield deployment.answers


def test_the_request_of_the_readme_is_answered(answers):
    request, error = (json.loads(block) for block in blocks("json"))
    answer = answers.answer_dict(request)
    assert [decision["kind"] for decision in answer["decisions"].values()] == [
        "single",
        "binary",
        "ordinal",
    ]
    documented = set(rows("### The answer"))
    assert answer.keys() <= documented
    assert error["error"].keys() == {"code", "message", "retryable", "request_id", "details"}


def test_the_python_of_the_readme_runs(monkeypatch, answers, capsys):
    class Deployed:
        def __init__(self):
            self.answers = answers

    monkeypatch.setattr("steelyard.bootstrap.default_deployment", Deployed)
    program, *_ = blocks("python")
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out.split()[0] in {"billing", "shipping"}


def test_the_programs_of_the_readme_with_a_server_run(monkeypatch, capsys):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    _, embedding, connecting, *_ = blocks("python")
    exec(compile(embedding, "README.md", "exec"), {})
    url, action = capsys.readouterr().out.split()
    assert url.startswith("http://127.0.0.1:")
    assert action in {"yes", "no"}
    with steelyard.embed() as server:
        monkeypatch.setenv("STEELYARD_URL", server.url)
        exec(compile(connecting, "README.md", "exec"), {})
    models, refusal = capsys.readouterr().out.splitlines()
    assert models == "['hashing']"
    assert "'outcomes'" in refusal
    assert "req_" in refusal


def test_the_program_on_datasets_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    program = next(block for block in blocks("python") if "support_triage" in block)
    names: dict[str, object] = {}
    exec(compile(program, "README.md", "exec"), names)
    n_rows, n_evaluation, total, n_found = map(int, capsys.readouterr().out.split())
    assert n_evaluation == total > 0
    assert 0 < n_found < n_rows
    assert names["frame"].height == 3


def test_the_programs_named_exist():
    for name in ("scripts/test", ".ci/run"):
        path = ROOT / name
        assert path.stat().st_mode & 0o111, f"{name} is not executable"
        subprocess.run(["bash", "-n", str(path)], check=True)
    assert "scripts/test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert "scripts/test" in commands
    assert all(shlex.split(line) or not line for line in commands if not line.endswith("\\"))
