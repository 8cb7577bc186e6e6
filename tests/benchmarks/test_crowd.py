"""The benchmarks of a server under load: one small run of each."""

from __future__ import annotations

import json

import pytest


@pytest.mark.slow
def test_a_run_measures_a_quiet_account_beside_crowds(script, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    figures = tmp_path / "figures.json"
    given = ["--seconds", "0.3", "--clients", "2", "--rows", "200", "--json", str(figures)]
    assert script("crowd").main(given) == 0
    rows = json.loads(figures.read_text())["this"]
    assert list(rows) == [
        "quiet, alone",
        "quiet, beside a crowd",
        "quiet, beside the public",
        "quiet, beside short calls",
        "quiet, beside short calls and a stream",
        "quiet, beside uploads",
        "2 clients",
    ]
    for row in rows.values():
        assert set(row["statuses"]) <= {"200", "503"}
        assert 0 < row["p50_ms"] <= row["p95_ms"]
    assert rows["quiet, beside uploads"]["others_refused"] < 1
    assert rows["2 clients"]["a_second"] > 0
    assert "quiet, beside a crowd" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_watches_memory_and_health(script, tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    figures = tmp_path / "figures.json"
    given = ["--seconds", "0.5", "--readers", "2", "--uploads", "2", "--rows", "300"]
    assert script("transfers").main([*given, "--json", str(figures)]) == 0
    for row in json.loads(figures.read_text())["this"].values():
        assert row["statuses"] == {"200": 2}
        assert 0 < row["idle_mb"] <= row["most_mb"]
        assert 0 < row["health_p50_ms"] <= row["health_max_ms"]


@pytest.mark.slow
def test_a_soak_counts_its_calls_and_says_how_memory_moved(script, tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    figures = tmp_path / "figures.json"
    script("soak").main(["--minutes", "0.05", "--json", str(figures)])
    found = json.loads(figures.read_text())
    assert set(found["statuses"]) <= {"200", "404"}
    assert found["statuses"]["200"] > 0
    assert found["second_quarter_mb"] > 0


@pytest.mark.parametrize("slope", [0.0, 60.0])
def test_growth_leaves_out_cache_filling(script, slope):
    samples = [(60.0 * n, (100 if n < 10 else 400) + slope * n / 60) for n in range(40)]
    found = script("soak").growth(samples)
    assert found["slope_mb_per_hour"] == pytest.approx(slope)
    assert found["change"] == pytest.approx(slope * 20 / 60 / (400 + slope * 14.5 / 60))


@pytest.mark.slow
def test_connected_models_are_measured_by_wire_and_beside_one_that_hangs(
    script, tmp_path, monkeypatch
):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    figures = tmp_path / "figures.json"
    given = ["--seconds", "0.3", "--rounds", "1", "--requests", "7", "--json", str(figures)]
    assert script("connected").main(given) == 0
    found = json.loads(figures.read_text())
    assert all(ms >= 0 for row in found["cpu_ms"].values() for ms in row.values())
    assert all(ms > 0 for rounds in found["p95_ms"].values() for ms in rounds)
