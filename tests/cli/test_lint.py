"""``steelyard lint``: findings as a table or JSON, and a status for scripts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from steelyard.decisions.lint.registry import RULES
from steelyard.decisions.lint.service import lint_dict

FLAGS = ("--context", "It came on Monday.", "--kind", "binary", "--question")
#: Findings that are infos alone.
INFO_ONLY = (
    *("--context", "x", "--question", "Which team?", "--outcome", "billing=money"),
    *("--outcome", "shipping", "--outcome", "other"),
)


def test_a_file_and_a_pipe_give_the_in_process_answer(run, request_file):
    expected = lint_dict(request_file.read_bytes())
    assert expected["warnings"]
    from_file = run("lint", str(request_file), "--json")
    from_pipe = run("lint", "-", "--json", stdin=request_file.read_bytes())
    for result in (from_file, from_pipe):
        assert (result.exit_code, result.stderr) == (0, "")
        assert json.loads(result.stdout) == expected


def test_the_table_names_decision_rule_severity_and_message(run):
    result = run("lint", *FLAGS, "Is it not late?", "--id", "late")
    assert result.exit_code == 0
    head, first, *_ = result.stdout.splitlines()
    assert head.split() == ["decision", "rule", "severity", "message"]
    assert first.split()[:3] == ["late", "negation", "warning"]


def test_a_clean_request_says_so(run):
    result = run("lint", *FLAGS, "Is it late?", "--strict")
    assert (result.exit_code, result.stdout) == (0, "Nothing found.\n")
    assert json.loads(run("lint", *FLAGS, "Is it late?", "--json").stdout) == {"warnings": []}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((*FLAGS, "Is it not late?"), 0),
        ((*FLAGS, "Is it not late?", "--strict"), 1),
        ((*FLAGS, "Is it not late?", "--strict", "--json"), 1),
        (INFO_ONLY, 0),
        ((*INFO_ONLY, "--strict"), 0),
        ((*FLAGS, " ", "--strict"), 2),
    ],
)
def test_the_status_tells_warnings_when_strict(run, arguments, status):
    result = run("lint", *arguments)
    assert result.exit_code == status, result.output
    assert bool(result.stdout) == (status != 2)


def test_an_invalid_request_names_every_field(run):
    body = {"context": 3, "decisions": [{"id": "a", "question": "Which?", "outcomes": ["x"]}]}
    result = run("lint", "-", stdin=json.dumps(body))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "\n  context is a number;" in result.stderr
    assert "\n  decisions[0].outcomes has 1 outcome;" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("request.json", "--question", "x")])
def test_a_command_line_that_cannot_be_used(run, arguments):
    assert run("lint", *arguments).exit_code == 2


def test_rules_are_listed_a_line_each_without_a_request(run):
    result = run("lint", "--rules")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split(maxsplit=2) for line in lines] == [
        [rule.name, rule.severity, rule.summary] for rule in RULES
    ]
    listed = json.loads(run("lint", "--rules", "--json").stdout)["rules"]
    assert [rule["rule"] for rule in listed] == [rule.name for rule in RULES]


def test_a_callers_text_cannot_drive_the_terminal(run):
    result = run("lint", *FLAGS, "Is it not late?", "--id", "\x1b[2Jlate[bold]")
    assert "\x1b[2J" not in result.stdout
    assert "late[bold]" in result.stdout


def test_no_engine_is_loaded():
    script = (
        "import sys, json\n"
        "from steelyard.cli.main import main\n"
        "main(['lint', '--context', 'x', '--kind', 'binary', '--question', 'Is it not so?'],"
        " standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "sanic", "numpy", "onnxruntime", "tokenizers", "steelyard.app.deployment"}
    assert set(json.loads(done.stderr)) & heavy == set()
    assert "negation" in done.stdout
