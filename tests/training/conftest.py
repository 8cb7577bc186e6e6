"""Tiny training data: a few sources of every kind, written as the training reads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.scoring.tokenizer import Tokenizer
from steelyard_base_recipe.mixture import VALIDATION_SOURCES, Mixture, load_mixture
from support.models.random_model import make_tokenizer_json, make_words

STATUSES = ("clear", "note")
TOPICS = {"bank money": "pay and card", "cold city": "winter", "late train": "station", "book": "x"}


def make_row(source: str, index: int) -> dict[str, Any]:
    """One labelled row whose answer can be read off its context."""
    topic = list(TOPICS)[index % len(TOPICS)]
    decisions: list[dict[str, Any]] = [
        {"id": "topic", "kind": "single", "question": "Which topic?", "outcomes": TOPICS},
        {"id": "cold", "kind": "binary", "question": "Is it cold?", "outcomes": ["yes", "no"]},
        {
            "id": "level",
            "kind": "ordinal",
            "question": "How late?",
            "outcomes": ["0", "1", "2"],
            "rubric": ["early", "quick", "late"],
        },
    ]
    late = float("late" in topic)
    targets = {
        "topic": {topic: 1.0},
        "cold": {"yes": float("cold" in topic), "no": float("cold" not in topic)},
        "level": {"0": 0.75 * (1 - late), "1": 0.25, "2": 0.75 * late},
    }
    context = f"{topic} {make_words(3 + index % 20, index)} {topic}"
    return {"context": context, "decisions": decisions, "targets": targets, "source": source}


def make_list_row(source: str, index: int) -> dict[str, Any]:
    """A row with a list of plain labels."""
    labels = [f"{source} label {number}" for number in range(6)]
    decision = {"id": "d", "kind": "single", "question": "Which label?", "outcomes": labels}
    right = labels[index % len(labels)]
    return {
        "context": f"{right} {make_words(5, index)}",
        "decisions": [decision],
        "targets": {"d": {right: 0.8, labels[0]: 0.2} if right != labels[0] else {right: 1.0}},
        "source": f"{source}/part{index % 2}",
    }


def make_rows() -> list[dict[str, Any]]:
    rows = [make_row("tickets", index) for index in range(24)]
    rows += [make_list_row("labels", index) for index in range(12)]
    rows += [make_list_row("unclear", index) for index in range(6)]
    rows += [make_list_row("unlisted", index) for index in range(6)]
    for source in VALIDATION_SOURCES[:2]:
        rows += [make_row(source, index) for index in range(8)]
    return rows


WEIGHTS = {
    "tickets": {"multiplier": 2.0, "status": "clear", "category": "intent / routing / support"},
    "labels": {"multiplier": 1.0, "status": "note", "category": "tools"},
    "unclear": {"multiplier": 1.0, "status": "unclear", "category": "tools"},
    VALIDATION_SOURCES[0]: {"multiplier": 9.0, "status": "clear", "category": "tools"},
}


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of training data."""
    folder = tmp_path_factory.mktemp("data")
    lines = "\n".join(json.dumps(row) for row in make_rows())
    (folder / "train.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "weights.json").write_text(json.dumps(WEIGHTS), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def mixture(data: Path) -> Mixture:
    return load_mixture(data, STATUSES)[0]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer(make_tokenizer_json(), name="words", revision="1")
