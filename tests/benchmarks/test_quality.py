"""The quality benchmark on rows written here: its figures, its pairing, its skipped tasks."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.calibration.metrics import pad_rows, summarise
from steelyard.calibration.temperature import TemperatureTable
from steelyard.scoring.hashing import HashingScorer

TEMPERATURES = TemperatureTable({"single": {"3-5": 2.0}, "binary": {"2": 0.5}})


def make_row(number):
    rng = np.random.default_rng(number)
    names = ["red", "green", "blue"]
    return {
        "context": f"text {number}",
        "decisions": [
            {"id": "colour", "kind": "single", "question": "Which?", "outcomes": names},
            {
                "id": "level",
                "kind": "ordinal",
                "question": "How much?",
                "outcomes": ["low", "high"],
                "rubric": ["a little", "a lot"],
            },
            {
                "id": "warm",
                "kind": "binary",
                "question": "Is it warm?",
                "outcomes": {"yes": "red or near it", "no": None},
            },
        ],
        "targets": {
            "colour": {names[rng.integers(3)]: 1.0},
            "level": {"low": 0.25, "high": 0.75},
            "warm": {"yes": 1.0} if rng.random() < 0.8 else {"no": 1.0},
        },
        "source": "made",
    }


@pytest.fixture
def data(tmp_path):
    """Return a folder of two sources: three tasks of 40 rows, and one of 25."""
    rows = [make_row(number) for number in range(65)]
    for row in rows[40:]:
        row["decisions"] = row["decisions"][:1]
    (tmp_path / "heldout").mkdir()
    for name, held in (("made", rows[:40]), ("plain", rows[40:])):
        with gzip.open(tmp_path / "heldout" / f"{name}.test.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in held)
    return tmp_path


@pytest.fixture
def quality(script, monkeypatch):
    """Return the script, with the hashing scorer under any engine's name."""
    module = script("quality")

    def load_engine(name, folder, options):
        label = "shipped" if name == "auto" else name
        scorer = HashingScorer(key=label.removesuffix("-again"))
        return f"{folder.name} {label}" if folder else label, SimpleNamespace(
            scorer=scorer, temperatures=TEMPERATURES
        )

    monkeypatch.setattr(module, "load_engine", load_engine)
    monkeypatch.setattr(module, "load_biencoder", lambda folder: None)
    return module


def run(quality, data, tmp_path, *arguments):
    out = tmp_path / "figures.json"
    assert quality.main(["--data", str(data), "--json", str(out), *arguments]) == 0
    return json.loads(out.read_text())


def test_it_skips_without_text(script, capsys, tmp_path):
    quality = script("quality")
    for arguments in ([], ["--data", str(tmp_path)]):
        assert quality.main(arguments) == 0
        assert capsys.readouterr().out.startswith("skipped:")


def test_figures_are_those_of_the_metrics(quality, script, data, tmp_path):
    found = run(quality, data, tmp_path)["engines"]["shipped"]
    assert list(found["tasks"]) == ["made/colour", "made/level", "made/warm", "plain"]
    rows = script("heldout").read_rows(data / "heldout" / "made.test.jsonl.gz")
    scored = HashingScorer(key="shipped").score([row.request for row in rows])
    for place, name in enumerate(["colour", "level", "warm"]):
        kind = rows[0].request.decisions[place].kind
        targets = pad_rows([row.targets[place] for row in rows])
        for when, table in (("before", TemperatureTable()), ("after", TEMPERATURES)):
            p = pad_rows([table.probabilities(one[place].logits, kind) for one in scored])
            expected = summarise(p, targets)
            for measure in ("accuracy", "log_loss", "brier", "ece"):
                figure = found["tasks"][f"made/{name}"][f"{measure}.{when}"]
                assert figure["value"] == pytest.approx(getattr(expected, measure))
                assert figure["low"] <= figure["value"] <= figure["high"]


def test_sources_weigh_the_same_and_so_do_the_tasks_of_one(quality, data, tmp_path):
    found = run(quality, data, tmp_path)["engines"]["shipped"]
    losses = {name: one["log_loss.after"]["value"] for name, one in found["tasks"].items()}
    made = np.mean([losses[f"made/{name}"] for name in ("colour", "level", "warm")])
    assert found["sources"]["made"]["log_loss.after"]["value"] == pytest.approx(made)
    mean = found["mean"]["log_loss.after"]["value"]
    assert mean == pytest.approx((made + losses["plain"]) / 2)


def test_the_rate_of_the_most_frequent_label_is_counted(quality, data, tmp_path):
    found = run(quality, data, tmp_path)["engines"]["shipped"]["tasks"]
    labels = [next(iter(make_row(number)["targets"]["warm"])) for number in range(40)]
    rate = max(labels.count("yes"), labels.count("no")) / 40
    assert found["made/warm"]["majority"]["value"] == pytest.approx(rate)
    assert found["made/level"]["majority"]["value"] == 1.0


def test_engines_and_models_are_compared_on_the_same_resamples(quality, data, tmp_path, capsys):
    for *arguments, first in (
        ("--engine", "float32", "--engine", "float32-again", "float32"),
        ("--also", "other", "shipped"),
    ):
        run(quality, data, tmp_path, *arguments)
        table = capsys.readouterr().out.split(f"against {first},")[1]
        assert table.count("1.0000 [1.0000, 1.0000]") == 5


def test_a_sample_of_rows_is_seeded(script, data):
    read_rows = script("heldout").read_rows
    path = data / "heldout" / "made.test.jsonl.gz"
    chosen = read_rows(path, 10, seed=3)
    assert [row.request for row in chosen] == [row.request for row in read_rows(path, 10, seed=3)]
    assert [row.request for row in chosen] != [row.request for row in read_rows(path, 10, seed=4)]
    assert len(read_rows(path, 1_000)) == 40


def test_rows_are_rendered_as_the_scorer_reads_them(script):
    row = script("heldout").row_from_dict(make_row(0) | {"context": ""})
    colour, level, warm = row.request.decisions
    assert row.request.context == "no context"
    assert colour.outcomes == ("red", "green", "blue")
    assert level.outcomes == ("low: a little", "high: a lot")
    assert warm.outcomes == ("yes: red or near it", "no")
    assert row.targets[1].tolist() == [0.25, 0.75]


def test_reliability_is_printed_for_every_task(quality, data, tmp_path, capsys):
    run(quality, data, tmp_path, "--reliability")
    printed = capsys.readouterr().out
    assert printed.count("reliability of ") == 4
    assert "0.9 to 1.0" in printed


def test_words_of_other_sources_stand_around_a_context(script, data):
    heldout = script("heldout")
    rows = heldout.read_rows(heldout.find_sources(data)["plain"], 3)
    around = heldout.distracted(rows, ["one two three", "four five"], 9)
    for row, plain in zip(around, rows, strict=True):
        before, context, after = row.request.context.split("\n")
        assert context == plain.request.context
        assert [len(before.split()), len(after.split())] == [4, 5]
        assert set(f"{before} {after}".split()) <= {"one", "two", "three", "four", "five"}
        assert row.targets is plain.targets
    assert around == heldout.distracted(rows, ["one two three", "four five"], 9)


def test_the_script_can_measure_with_words_around(script, data, capsys):
    arguments = ["--data", str(data), "--engine", "hashing", "--resamples", "20"]
    assert script("quality").main([*arguments, "--distract", "20"]) == 0
    assert "20 words around every context" in capsys.readouterr().out
