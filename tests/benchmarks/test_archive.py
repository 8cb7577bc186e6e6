"""The benchmark of a large log: one small run."""

from __future__ import annotations

import json


def test_a_run_measures_decisions_and_reads(script, tmp_path, capsys):
    figures = tmp_path / "figures.json"
    small = ["--rows", "300", "--characters", "80", "--decides", "2", "--reads", "2"]
    archive = script("archive")
    assert archive.main([*small, "--folder", str(tmp_path), "--json", str(figures)]) == 0
    told = json.loads(figures.read_text())
    assert set(told["decide"]) == set(archive.LOGS)
    assert all(one["p95_ms"] > 0 for one in told["decide"].values())
    assert {one["log"] for one in told["read"]} == {archive.STATE, archive.ARCHIVE}
    assert told["made"]["file_bytes"] > 0
    assert "a page of 200" in capsys.readouterr().out
