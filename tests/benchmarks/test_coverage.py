"""The benchmark of intervals: what it counts, and a world small enough for every run."""

from __future__ import annotations

import pytest


@pytest.fixture
def coverage(script, monkeypatch):
    module = script("coverage")
    monkeypatch.setattr(module, "_LARGE", 4_000)
    monkeypatch.setattr(module, "WORLDS", module.WORLDS[4:5])
    return module


def test_every_figure_holds_the_truth_or_has_no_interval(coverage):
    (world,) = coverage.WORLDS
    counts = coverage.covered(world, 4, draws=15, seed=0)
    assert {"accuracy", "loss", "ece", "auc of an outcome", "cost", "change of loss"} <= set(counts)
    # At 93 % fewer than 10 of 15 are met once in ten thousand times.
    assert all(holds >= 10 for holds, n in counts.values() if n == 15)
    assert counts["accuracy"][1] == 15
    # Calibration is not compared on so few decisions.
    assert counts["change of ece"][1] == 0


def test_what_misses_the_truth_fails_the_run(coverage, monkeypatch, capsys):
    monkeypatch.setattr(coverage, "truth", lambda world: {"accuracy": -1.0, "loss": 0.5})
    monkeypatch.setattr(coverage, "ProcessPoolExecutor", _Here)
    figures = coverage.figures
    monkeypatch.setattr(
        coverage,
        "figures",
        lambda *given: {k: v for k, v in figures(*given).items() if k in {"accuracy", "loss"}},
    )
    assert coverage.main(["--draws", "5", "--contexts", "3"]) == 1
    assert "accuracy" in capsys.readouterr().out


class _Here:
    """A pool of this process alone."""

    def __init__(self, workers):
        self.map = map

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
