"""The benchmark of a ladder: it lists its needs, and measures both on the same rows."""

from __future__ import annotations

import pytest

from support.families.tuning_rows import WordScorer, team_rows


def test_without_data_it_is_skipped(script, capsys):
    assert script("ladder").main([]) == 0
    assert "--data" in capsys.readouterr().out


@pytest.mark.parametrize(("n_rows", "is_certified"), [(100, False), (2_000, True)])
def test_words_answer_where_held_out_rows_certify_them(script, n_rows, is_certified):
    line = script("ladder").compare(
        "teams", team_rows(n_rows), team_rows(40, seed=1), ["quite unlike"], WordScorer(), 0
    )
    assert line[:2] == ["teams", f"{n_rows:,}"]
    assert (line[2] != "none") is is_certified
    assert (float(line[3]) > 0) is is_certified
    assert all(0.5 < float(share) <= 1 for share in line[4:7])
    assert line[-1] == "0.00"
