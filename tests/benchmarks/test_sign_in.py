"""The benchmark of signing in: a small run of it."""

from __future__ import annotations

import json

import pytest


@pytest.mark.slow
def test_a_run_compares_known_and_unknown_addresses(script, tmp_path, capsys):
    figures = tmp_path / "figures.json"
    assert script("sign_in").main(["--tries", "4", "--json", str(figures)]) == 0
    for row in json.loads(figures.read_text()).values():
        assert row["n"] == 4
        assert row["low_ms"] <= row["high_ms"]
    assert "95 % interval" in capsys.readouterr().out
