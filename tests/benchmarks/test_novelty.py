"""The benchmark of texts unlike any seen: it lists its needs."""

from __future__ import annotations


def test_without_data_it_is_skipped(script, capsys):
    assert script("novelty").main([]) == 0
    assert "--data" in capsys.readouterr().out
