"""The benchmark of words alone: it lists its needs, and measures both ways."""

from __future__ import annotations

from support.families.tuning_rows import WordScorer, team_rows


def test_without_data_it_is_skipped(script, capsys):
    assert script("words").main([]) == 0
    assert "--data" in capsys.readouterr().out


def test_both_ways_are_measured_on_the_same_rows(script):
    line = script("words").compare(
        "teams", team_rows(80), team_rows(40, seed=1), ["quite unlike"], WordScorer(), 0
    )
    assert line[:3] == ["teams", "80", "3"]
    assert all(0.5 < float(share) <= 1 for share in line[3:5])
