"""The benchmark of intervals: its counts, and a world small enough for every run."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.evaluations.measures.comparison import pair_records


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


def test_an_interval_that_misses_the_truth_fails_the_run(coverage, monkeypatch, capsys):
    monkeypatch.setattr(coverage, "truth", lambda world: {"accuracy": -1.0, "loss": 0.5})
    figures = coverage.figures
    monkeypatch.setattr(
        coverage,
        "figures",
        lambda data, **how: {
            k: v for k, v in figures(data, **how).items() if k in {"accuracy", "loss"}
        },
    )
    assert coverage.main(["--draws", "5", "--contexts", "3"]) == 1
    assert "accuracy" in capsys.readouterr().out


def test_figures_of_many_contexts_are_those_that_an_evaluation_answers(coverage, monkeypatch):
    monkeypatch.setattr(coverage, "MANY", 20)
    world = coverage.World("some a context", 0.55)
    drawn = dict(coverage.drawn_figures(world, 60, 1, seed=0))
    data = coverage.draw(world, 60, np.random.default_rng([0, 60, 0]))
    pairing = pair_records(data.before, data.after)
    changes = coverage.paired_measures(pairing, coverage.Bootstrap(n_resamples=2000))
    assert coverage.figures(data, 2000)["change of loss"] == changes.loss
    # By other weights, as many and as few as the simulation has.
    for name, figure in coverage.figures(data, 2000).items():
        if drawn[name] is None:
            assert name == "agreement (alpha)"
            continue
        ends = drawn[name].low, drawn[name].high
        assert ends == pytest.approx((figure.low, figure.high), abs=0.1), name
