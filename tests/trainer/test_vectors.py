"""Vectors that a fine-tune starts with and leaves: each context is read once, and nothing else changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import render_context
from steelyard.evaluations.gate_wire import BeforeAfter
from steelyard.trainer import program
from steelyard.trainer.bases import TrainedBase
from steelyard.trainer.program import run
from steelyard.trainer.task import VECTORS
from steelyard.trainer.vectors import key_of, read_vectors
from support.families.trainer_folders import TEAM, make_rows, result_of, write_task
from support.families.tuning_rows import WordScorer

ROWS = [*make_rows(40, "training"), *make_rows(20, "evaluation")]
TRAINING = {render_context(row.context) for row in ROWS if row.side == "training"}
EVERY = {render_context(row.context) for row in ROWS}
OUTCOMES = {*TEAM["outcomes"], "yes", "no"}


class ListingScorer(WordScorer):
    """The test double, with the texts that it read a vector of."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts):  # type: ignore[no-untyped-def]  # as the double's
        self.texts += texts
        return super().embed(texts)


def test_a_fine_tune_reads_each_context_once_and_those_that_are_stored_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = (write_task(tmp_path / name, ROWS) for name in ("first", "second"))
    scorers = [ListingScorer(), ListingScorer()]
    bases = [TrainedBase(scorer, TemperatureTable(), None) for scorer in scorers]
    monkeypatch.setattr(program, "load_base", lambda *_: bases.pop(0))
    monkeypatch.setattr(program, "time_both", lambda *_: BeforeAfter(before=1.0, after=1.0))
    run(first)
    assert sorted(scorers[0].texts) == sorted(EVERY | OUTCOMES)
    assert read_vectors(first / VECTORS).keys() == set(map(key_of, EVERY))
    shutil.copy(first / VECTORS, second / VECTORS)
    run(second)
    # Held-out contexts are scored by vectors in full, as a server does.
    assert not TRAINING & set(scorers[1].texts)
    assert result_of(second) == result_of(first)
    assert (second / VECTORS).read_bytes() == (first / VECTORS).read_bytes()
