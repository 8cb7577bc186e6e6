"""A teacher's labels: what is asked of a text, how labels and answers are mixed, and going on."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import numpy as np
import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.serving.judge.evidence import Evidence
from steelyard_base_recipe import soft_labels
from steelyard_base_recipe.mixture import Row
from steelyard_base_recipe.soft_labels import Labeler, in_turns
from steelyard_base_recipe.teacher_questions import (
    MAX_OUTCOMES,
    QuestionPool,
    own_questions,
    thin,
)

TEAMS = [f"team {number}" for number in range(12)]


def make_row(index, source="tickets", cold=True):
    return Row(
        context=f"text {index} of {source}",
        decisions=[
            {"id": "c", "kind": "binary", "question": "Is it cold?", "outcomes": ["yes", "no"]},
            {"id": "t", "kind": "single", "question": "Which team?", "outcomes": TEAMS},
        ],
        targets={"c": {"yes": float(cold), "no": float(not cold)}, "t": {TEAMS[index % 12]: 1.0}},
        source=source,
    )


class FakeTeacher:
    """Answers yes to questions with the word cold, no to others, and picks the first outcome."""

    def __init__(self):
        self.requests, self.written = [], []

    async def gather(self, request):
        self.requests.append(request)
        answers = []
        for decision in request.decisions:
            logs = np.full(len(decision.outcomes), -3.0)
            logs[0 if "cold" in decision.question or decision.kind != "binary" else 1] = -0.1
            opposite = logs[::-1].copy() if decision.opposite else None
            answers.append(Evidence(logs, opposite=opposite))
        return answers

    async def write(self, messages, max_tokens):
        self.written.append(messages[-1]["content"])
        return "Is it warm?" if "Opposite:" in self.written[-1] else "Does it matter?"


@pytest.fixture
def rows():
    rows = [make_row(index) for index in range(20)] + [make_row(n, "letters") for n in range(10)]
    return in_turns(rows, seed=0)


def make_labeler(tmp_path, rows, teacher):
    pool = QuestionPool(rows, {"tickets": "support", "letters": "support"})
    return Labeler(teacher, tmp_path / "labels.jsonl", pool)


async def label(labeler, rows, n_decisions):
    await labeler.calibrate(reversed(rows), n_decisions=5)
    return [state.n_decisions async for state in labeler.label(rows, n_decisions)]


def read(tmp_path):
    return [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]


def test_a_text_is_asked_both_ways_and_read_once(tmp_path, rows):
    teacher = FakeTeacher()
    asyncio.run(label(make_labeler(tmp_path, rows, teacher), rows, 12))
    contexts = [request.context for request in teacher.requests]
    assert all(text != following for text, following in pairwise(contexts))
    assert len([text for text in teacher.written if "Is it cold?" in text]) == 1  # for all texts
    first = read(tmp_path)[0]
    by_question = {
        decision["question"]: first["targets"][decision["id"]] for decision in first["decisions"]
    }
    assert by_question["Is it cold?"]["yes"] == pytest.approx(by_question["Is it warm?"]["no"])
    assert by_question["Is it cold?"]["yes"] > 0.9
    assert "Does it matter?" in by_question


def test_what_teacher_and_label_contradict_is_dropped(tmp_path):
    rows = [make_row(index, cold=index % 5 > 0) for index in range(20)]
    labeler = make_labeler(tmp_path, rows, FakeTeacher())
    labeler.state.temperatures = TemperatureTable().to_dict()  # as if calibrated
    asyncio.run(label(labeler, rows, 1_000))
    score = labeler.state.scores["binary"]
    assert (score.n_decisions, score.n_right) == (20, 16)
    questions = [row["decisions"][0]["question"] for row in read(tmp_path)]
    assert questions.count("Is it cold?") == 16


def test_an_ended_run_goes_on(tmp_path, rows):
    asyncio.run(label(make_labeler(tmp_path, rows, FakeTeacher()), rows, 10_000))
    whole = read(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    asyncio.run(label(make_labeler(tmp_path, rows, FakeTeacher()), rows, 30))
    with (tmp_path / "labels.jsonl").open("a") as lines:
        lines.write('{"context": "half a li')
    teacher = FakeTeacher()
    asyncio.run(label(make_labeler(tmp_path, rows, teacher), rows, 10_000))
    assert read(tmp_path) == whole
    assert not [text for text in teacher.written if "Opposite:" in text]


def test_a_choice_keeps_what_is_right():
    [_, question] = own_questions(make_row(3))
    for seed in range(5):
        thinner = thin(question, np.random.default_rng(seed))
        assert len(thinner.names) == len(thinner.gold) == MAX_OUTCOMES
        assert thinner.names[int(np.argmax(thinner.gold))] == "team 3"


def test_progress_has_the_teachers_own_score(tmp_path, rows, capsys):
    pool = QuestionPool(rows, {"tickets": "support"})
    out = tmp_path / "labels.jsonl"
    asyncio.run(soft_labels.run(FakeTeacher(), rows, pool, out, n_decisions=20, seed=0))
    shown = json.loads(capsys.readouterr().out.splitlines()[0])
    assert shown["teacher"]["binary"]["accuracy"] == 1.0
    assert shown["decisions an hour"] > 0
