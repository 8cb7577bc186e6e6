"""The benchmark of evidence: it lists its needs, and measures both ways and the reader alone."""

from __future__ import annotations

import hashlib

import numpy as np

from steelyard.decisions.rendering import RenderedDecision
from steelyard.scoring.entailment.reader import EvidenceReader
from steelyard.trainer.rows import TuningRow
from support.families.tuning_rows import WordScorer
from support.models.entailment_models import MOODS, write_encoder

ASKED = RenderedDecision("single", "How does the customer feel?", ("good", "bad"))


def mood_rows(n_rows: int) -> list[TuningRow]:
    rows = []
    for number in range(n_rows):
        mood = list(MOODS)[number % len(MOODS)]
        context = f"word{number} word{number % 7}. The customer is {mood}."
        name = hashlib.sha256(context.encode()).hexdigest()
        labels = np.array([MOODS[mood] > 0, MOODS[mood] < 0], float)
        rows.append(TuningRow(context, name, ASKED, labels))
    return rows


def test_without_data_it_is_skipped(script, capsys):
    assert script("evidence").main([]) == 0
    assert "--data" in capsys.readouterr().out


def test_both_ways_and_the_reader_are_measured(script, tmp_path):
    evidence = script("evidence")
    rows = evidence.yes_no(mood_rows(60), "good", "Is the customer happy?")
    reader = EvidenceReader(write_encoder(tmp_path, questions=True))
    figures = evidence.compare(rows, 20, 1, 20, WordScorer(), reader, 0)
    line = evidence.line_of("moods", 20, evidence.joined([figures, figures]))
    assert line[:3] == ["moods", "20", "2/2"]
    assert figures.right["alone"].mean() == figures.right["with"].mean() == 1.0
    assert len(line) == 13
