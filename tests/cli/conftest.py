from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from steelyard.cli.main import main

REQUEST = {
    "context": "My card was charged twice.",
    "decisions": [
        {"id": "team", "question": "Which team?", "outcomes": {"billing": "money", "other": None}},
        {"id": "refund", "kind": "binary", "question": "Money back?"},
        {"id": "urgency", "kind": "ordinal", "question": "How urgent?", "rubric": ["low", "high"]},
    ],
}


@pytest.fixture(scope="module", autouse=True)
def answers_over_http_are_checked(every_response_is_checked):
    """Check every server's answer to a command against the document."""


@pytest.fixture
def run(monkeypatch):
    """Run the command in this process on the hashing engine; give click's result."""
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")

    def run_command(*arguments: str, stdin: str | bytes | None = None):
        return CliRunner().invoke(main, list(arguments), input=stdin, terminal_width=100)

    return run_command


@pytest.fixture
def request_file(tmp_path):
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUEST))
    return path
