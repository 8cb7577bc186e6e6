"""``steelyard model show``."""

from __future__ import annotations

import json


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
