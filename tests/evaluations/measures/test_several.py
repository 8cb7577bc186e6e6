"""F1 over several labels at once, as the gate shows it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import UNSET

from support.families.gates import judged
from support.models.scored_records import ScoredRecord

LABELS = ("refund", "late", "broken")


def rows(answered: np.ndarray, truth: np.ndarray) -> list[ScoredRecord]:
    """Return a yes/no record of each context and label."""
    return [
        ScoredRecord(
            f"c{context:03d}",
            LABELS[label],
            "binary",
            ("yes", "no"),
            (0.9, 0.1) if answered[context, label] else (0.1, 0.9),
            (1, 0) if truth[context, label] else (0, 1),
        )
        for context in range(len(answered))
        for label in range(answered.shape[1])
    ]


def f1(answered: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return 2 * (answered & truth).sum(axis=0) / (answered.sum(axis=0) + truth.sum(axis=0))


def test_f1_of_several_labels_has_intervals():
    rng = np.random.default_rng(0)
    truth = rng.random((60, 3)) < 0.4
    before, after = (truth ^ (rng.random((60, 3)) < slips) for slips in (0.4, 0.05))
    several = judged(rows(before, truth), rows(after, truth)).gate.several
    assert (several.labels, several.contexts) == (3, 60)
    assert several.macro.before.value == pytest.approx(f1(before, truth).mean())
    assert several.macro.after.value == pytest.approx(f1(after, truth).mean())
    micro = 2 * (after & truth).sum() / (after.sum() + truth.sum())
    assert several.micro.after.value == pytest.approx(micro)
    for figure in (several.micro, several.macro):
        assert 0 <= figure.after.low < figure.after.value < figure.after.high <= 1
        assert 0 < figure.low < figure.change < figure.high


def test_one_yes_no_decision_is_no_set_of_labels():
    truth = np.random.default_rng(1).random((30, 1)) < 0.5
    assert judged(rows(truth, truth), rows(truth, truth)).gate.several is UNSET


def test_one_context_has_no_interval():
    truth = np.array([[True, False, True]])
    several = judged(rows(truth, truth), rows(truth, truth)).gate.several
    assert (several.micro.after.value, several.micro.after.low, several.micro.low) == (
        1,
        None,
        None,
    )
