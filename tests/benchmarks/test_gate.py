"""The gate's benchmark: models equal in truth are, planted falls fall, and tables are printed."""

from __future__ import annotations

import numpy as np
import pytest


def test_models_made_equal_are_equal_in_truth_and_not_in_sureness(script):
    gate = script("gate")
    for task in (gate.Task(), gate.Task(per_context=3)):
        surer = gate.Model(sureness=2.0)
        other = gate.as_bad_as(surer, task)
        assert other.sureness < 1 < surer.sureness
        assert gate.true_harm(other, task) == pytest.approx(gate.true_harm(surer, task), abs=0.01)


def test_a_calibrated_model_is_the_best_of_its_noise(script):
    gate = script("gate")
    harms = [gate.true_harm(gate.Model(1.0, sureness), gate.Task()) for sureness in (0.7, 1.0, 1.4)]
    assert min(harms) == harms[1]
    assert gate.true_harm(gate.Model(0.5), gate.Task()) < harms[1]


def test_confused_decisions_are_those_of_the_outcome(script):
    gate = script("gate")
    task, rng = gate.Task(outcomes=3), np.random.default_rng(0)
    held = gate.draw(task, 200, rng)
    clear = gate.answer(gate.Model(), held, rng)
    confused = gate._confuse(clear, held, 1.0, rng)
    is_first = held.right == 0
    assert np.array_equal(confused[~is_first], clear[~is_first])
    assert np.array_equal(confused[is_first][:, [1, 0, 2]], clear[is_first])


@pytest.fixture
def quick(script, monkeypatch):
    """The script over few decisions; ``judged`` grows with every verdict."""
    gate, judged = script("gate"), []
    verdict = gate.verdict

    def judge_small(scene, rng):
        judged.append(gate.replace(scene, n_new=25, n_earlier=min(scene.n_earlier, 25)))
        return verdict(judged[-1], rng)

    monkeypatch.setattr(gate, "_LARGE", 3_000)
    monkeypatch.setattr(gate, "verdict", judge_small)
    return gate, judged


def test_equal_seeds_give_equal_tables(quick, capsys):
    gate, _ = quick
    printed = []
    for seed in ("1", "1", "2"):
        assert gate.main(["--draws", "3", "--tables", "rules", "--seed", seed]) == 0
        table = capsys.readouterr().out.splitlines()[1:]
        printed.append([line for line in table if not line.startswith("(")])
    assert printed[0] == printed[1] != printed[2]


def test_every_table_is_there(quick, capsys):
    gate, judged = quick
    assert gate.main(["--draws", "1"]) == 0
    printed = capsys.readouterr().out
    for title in (
        "Claims of a gain that is none",
        "Real gains",
        "Planted falls",
        "The other rules",
    ):
        assert title in printed
    assert len(judged) > 60
