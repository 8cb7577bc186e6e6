"""The fine-tune benchmark: the task it makes, the figures it gives, the table it prints."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

OUTCOMES = ["lost card", "exchange rate"]
WORDS = {"lost card": ["lost", "stolen", "card"], "exchange rate": ["rate", "euro", "exchange"]}


def make_row(number: int) -> dict:
    label = OUTCOMES[number % 2]
    words = [WORDS[label][number % 3], f"case {number}"]
    # The order of outcomes differs from row to row, as it may.
    outcomes = OUTCOMES if number % 3 else OUTCOMES[::-1]
    decision = {"id": "intent", "kind": "single", "question": "Which?", "outcomes": outcomes}
    return {
        "context": " ".join(words),
        "decisions": [decision],
        "targets": {"intent": {label: 1.0}},
        "source": "banking77",
    }


@pytest.fixture
def data(tmp_path):
    for side, numbers in (("train", range(60)), ("test", range(100, 140))):
        lines = "\n".join(json.dumps(make_row(number)) for number in numbers)
        path = tmp_path / f"banking77.{side}.jsonl.gz"
        path.write_bytes(gzip.compress(lines.encode()))
    return tmp_path


def test_without_data_it_skips(script, capsys, tmp_path):
    finetune = script("finetune")
    assert finetune.main([]) == 0
    assert finetune.main(["--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("skipped") == 2


def test_a_table_has_a_line_for_each_method(script, data, capsys):
    finetune = script("finetune")
    options = ["--data", str(data), "--engine", "hashing", "--methods", "ours", "tfidf + lr"]
    kept = data / "results.json"
    assert finetune.main([*options, "--json", str(kept), "--cuts", "full", "8 each"]) == 0
    told = capsys.readouterr().out
    results = json.loads(kept.read_text())
    assert [(one["rows"], one["method"]) for one in results] == [
        (rows, method) for rows in ("full", "8 each") for method in ("ours", "tfidf + lr")
    ]
    for one in results:
        assert one["method"] in told
        assert one["n"] == 40
        assert one["n_train"] == (60 if one["rows"] == "full" else 16)
        assert one["accuracy"]["value"] > 0.9
        assert one["accuracy"]["low"] <= one["accuracy"]["value"] <= one["accuracy"]["high"]
        assert one["seconds"]["learning"] > 0


def test_the_area_under_risk_is_that_of_the_definition(script):
    area = script("finetune").area_under_risk
    tops, hits = np.array([0.9, 0.8, 0.7, 0.6]), np.array([1.0, 1.0, 0.0, 1.0])
    assert area(tops, hits) == pytest.approx((0 + 0 + 1 / 3 + 1 / 4) / 4)
    assert area(tops, np.ones(4)) == 0


def test_labels_follow_the_order_of_the_first_row(script, data):
    finetune = script("finetune")
    rows = finetune.read_rows(data / "banking77.train.jsonl.gz")
    task = finetune.read_task(rows, rows)
    names = [task.decision.outcomes[label] for label in task.labels]
    assert names == [OUTCOMES[number % 2] for number in range(60)]
    assert np.array_equal(task.labels, task.truths)


def test_test_rows_that_nothing_could_learn_are_left_out(script, data, capsys):
    finetune = script("finetune")
    rows = finetune.read_rows(data / "banking77.train.jsonl.gz")
    task = finetune.read_task(rows[::2], rows)
    assert set(task.truths) == set(task.labels)
    assert len(task.tests) == len(task.truths) == 30
    assert "30 test rows are left out" in capsys.readouterr().err


def test_outcomes_without_training_rows_have_no_share(script):
    methods = script("finetune_methods")
    found = methods.spread(np.array([[0.25, 0.75]]), np.array([2, 0]), 4)
    assert found.tolist() == [[0.75, 0.0, 0.25, 0.0]]
