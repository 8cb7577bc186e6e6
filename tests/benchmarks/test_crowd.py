"""The crowd benchmark: one small run of the whole."""

from __future__ import annotations

import json


def test_a_run_measures_a_quiet_account_beside_crowds(script, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    figures = tmp_path / "figures.json"
    given = ["--seconds", "0.3", "--clients", "2", "--json", str(figures)]
    assert script("crowd").main(given) == 0
    rows = json.loads(figures.read_text())["this"]
    assert list(rows) == [
        "quiet, alone", "quiet, beside a crowd", "quiet, beside the public", "2 clients",
    ]  # fmt: skip
    for row in rows.values():
        assert set(row["statuses"]) <= {"200", "503"}
        assert 0 < row["p50_ms"] <= row["p95_ms"]
    assert rows["2 clients"]["a_second"] > 0
    assert "quiet, beside a crowd" in capsys.readouterr().out


def test_a_run_watches_memory_and_health(script, tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    figures = tmp_path / "figures.json"
    given = ["--seconds", "0.5", "--readers", "2", "--uploads", "2", "--rows", "300"]
    assert script("transfers").main([*given, "--json", str(figures)]) == 0
    for row in json.loads(figures.read_text())["this"].values():
        assert row["statuses"] == {"200": 2}
        assert 0 < row["idle_mb"] <= row["most_mb"]
        assert 0 < row["health_p50_ms"] <= row["health_max_ms"]
