from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the train extra: pip install steelyard[train]")

from steelyard.training.shape import Shape
from steelyard_base_recipe.calibrate import (
    ROWS_PER_SOURCE,
    calibration_set,
    closest_good,
    fit_similarity,
    fit_temperatures,
)
from steelyard_base_recipe.mixture import Mixture, MixtureRow

CHOICE = {"id": "topic", "kind": "single", "question": "Which topic?", "outcomes": ["pets", "cars"]}
CHECK = {"id": "spam", "kind": "binary", "question": "Is it spam?", "outcomes": ["yes", "no"]}


def make_row(number: int, source: str = "news") -> MixtureRow:
    targets = {"topic": {"pets": 1.0}, "spam": {"yes": 0.25, "no": 0.75}}
    return MixtureRow(f"text number {number}", [CHOICE, CHECK], targets, source)


def make_mixture() -> Mixture:
    labels = {"other": [f"label {i}" for i in range(200)]}
    return Mixture(rows={"other": []}, shares={"other": 1.0}, labels=labels)


@pytest.mark.parametrize(
    ("losses", "trained", "expected"),
    [
        ({0.0: 1.5, 12.0: 1.001, 20.0: 1.0}, 12.0, 12.0),  # nearly as good: the trained one stays
        ({0.0: 1.5, 12.0: 1.02, 20.0: 1.0015, 36.0: 1.0}, 12.0, 20.0),
        ({0.0: 1.0, 12.0: 1.02}, 12.0, 0.0),
    ],
)
def test_a_better_weight_must_be_clearly_better(losses, trained, expected) -> None:
    assert closest_good(losses, trained) == expected


def test_a_choice_is_asked_twice_and_a_check_once() -> None:
    chosen = calibration_set({"news": [make_row(i) for i in range(20)]}, make_mixture())

    assert len(chosen.requests) == 20
    assert chosen.kinds.count("single") == 40
    assert chosen.kinds.count("binary") == 20
    assert len(chosen.targets) == len(chosen.tasks) == len(chosen.kinds) == 60
    assert all(target.sum() == pytest.approx(1.0) for target in chosen.targets)
    padded = [t for t, kind in zip(chosen.targets, chosen.kinds, strict=True) if kind == "single"]
    assert {len(target) for target in padded[1::2]} > {10}
    assert all(target[0] == 1.0 for target in padded)


def test_decisions_of_one_kind_are_asked_each_by_itself() -> None:
    chosen = calibration_set({"news": [make_row(i) for i in range(5)]}, make_mixture())
    checks = chosen.of_kinds(["binary"])

    assert checks.counts() == {"binary 2": 5}
    assert [r.decisions[0].question for r in checks.requests] == ["Is it spam?"] * 5
    assert [r.context for r in checks.requests] == [r.context for r in chosen.requests]
    assert all(target.tolist() == [0.25, 0.75] for target in checks.targets)
    assert checks.tasks == ("news",) * 5


def test_no_source_decides_alone() -> None:
    rows = [make_row(i) for i in range(ROWS_PER_SOURCE + 30)]
    chosen = calibration_set({"news": rows, "more": rows[:5]}, make_mixture())

    assert len(chosen.requests) == ROWS_PER_SOURCE + 5
    assert sum(chosen.counts().values()) == len(chosen.kinds)


def test_similarity_is_weighed_where_there_is_one(random_folder, load) -> None:
    model = load("random", "onnxruntime-float32")
    weights = stored_weights(random_folder)
    chosen = calibration_set({"news": [make_row(i) for i in range(4)]}, make_mixture())
    fitted, losses = fit_similarity(weights, Shape.of(weights), model.tokenizer, chosen)

    assert set(losses) == {"single", "binary"}  # nothing is ordinal
    assert fitted[2] == weights["similarity_weight"][2]
    assert f"{fitted[0]:g}" in losses["single"]
    assert f"{fitted[1]:g}" in losses["binary"]


def test_every_kind_that_was_asked_has_a_temperature(random_folder, load) -> None:
    model = load("random", "onnxruntime-float32")
    chosen = calibration_set({"news": [make_row(i) for i in range(4)]}, make_mixture())
    table = fit_temperatures(model.scorer, chosen).to_dict()["temperatures"]

    assert set(table) == {"single", "binary"}
    assert all(0.05 <= value <= 20 for row in table.values() for value in row.values())


def stored_weights(folder) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    from steelyard.scoring.assets import WEIGHTS

    return {name: value for file in WEIGHTS for name, value in load_file(folder / file).items()}
