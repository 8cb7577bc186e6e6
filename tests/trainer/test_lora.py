"""LoRA: its draws, its learning, and that a killed run ends as an unbroken one."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import TrainingUnavailableError
from steelyard.trainer import lora
from steelyard.trainer.lora import lacking_for_lora, train_lora
from steelyard.trainer.rows import TuningRow

needs_torch = pytest.mark.skipif(
    lacking_for_lora() is not None,
    reason="LoRA needs the train extra: pip install steelyard[train]",
)
TOPIC = RenderedDecision("single", "Which place?", ("winter", "station", "school", "river"))
CHECK = RenderedDecision("binary", "Is it about money?", ("yes", "no"))
#: Words that say the place, chosen so that the base model cannot know them to.
SIGNS = ("bank", "fire", "paper", "door")
STEPS = 12


def make_row(index: int, *, reward: bool = False) -> TuningRow:
    place = index % len(SIGNS)
    context = f"{SIGNS[place]} number {index}"
    labels = np.eye(len(SIGNS))[place]
    return TuningRow(context, sha256(context), TOPIC, 5.0 * labels - 3.0 if reward else labels)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_rows(n_rows: int = 24, *, reward: bool = False) -> list[TuningRow]:
    return [make_row(index, reward=reward) for index in range(n_rows)]


def train(folder: Path, rows: list[TuningRow] | None = None, **given) -> Path:
    arguments = {
        "base_folder": None,
        "parent": None,
        "rank": 4,
        "steps": STEPS,
        "learning_rate": 2e-3,
        "seed": 3,
        "method": "sft",
        "batch": 8,
        "on_step": lambda step, loss, rate: None,
        "threads": 1,
        **given,
    }
    return train_lora(make_rows() if rows is None else rows, folder=folder, **arguments)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def mean_right(scorer, rows: list[TuningRow]) -> float:
    """Return the mean probability of the right place."""
    scored = scorer.score([RenderedRequest(row.context, (row.decision,)) for row in rows])
    shares = []
    for row, (decision,) in zip(rows, scored, strict=True):
        weights = np.exp(decision.logits - decision.logits.max())
        shares.append(float((weights / weights.sum())[row.labels.argmax()]))
    return float(np.mean(shares))


def test_missing_packages_are_named_without_an_import(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(
        util, "find_spec", lambda name: None if name in {"torch", "peft"} else object()
    )
    lacking = lacking_for_lora()
    assert lacking is not None
    assert "torch, peft" in lacking
    assert "steelyard[train]" in lacking
    with pytest.raises(TrainingUnavailableError, match="steelyard\\[train\\]"):
        train(tmp_path)
    monkeypatch.setattr(util, "find_spec", lambda name: object())
    assert lacking_for_lora() is None


def test_asking_loads_no_torch() -> None:
    code = (
        "import sys; from steelyard.trainer.lora import lacking_for_lora; "
        "lacking_for_lora(); sys.exit(bool({'torch', 'peft', 'onnx'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("rank", [0, 17])
def test_a_rank_out_of_range_is_refused(monkeypatch, tmp_path, rank) -> None:
    monkeypatch.setattr(lora, "lacking_for_lora", lambda: None)
    with pytest.raises(ValueError, match="from 1 to 16"):
        train(tmp_path, rank=rank)


@needs_torch
class TestDraws:
    def test_an_epoch_has_every_row_once(self) -> None:
        from steelyard.trainer.units import drawn

        # 7 rows, 4 a step: 7 steps are 4 epochs.
        places = [index for step in range(7) for index in drawn(7, 4, step, seed=5)]
        epochs = [places[start : start + 7] for start in range(0, 28, 7)]
        assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
        assert len({tuple(epoch) for epoch in epochs}) > 1
        assert drawn(7, 4, 3, seed=5) != drawn(7, 4, 3, seed=6)

    def test_right_outcomes_stay_when_many_are_thinned(self) -> None:
        from steelyard.trainer.units import MAX_OUTCOMES, thinned

        labels = np.zeros(77)
        labels[[3, 60]] = 0.75, 0.25
        names = tuple(f"name {index}" for index in range(77))
        row = TuningRow("a", "a", RenderedDecision("single", "Which?", names), labels)
        kept = [thinned(row, "sft", np.random.default_rng(seed)) for seed in range(20)]
        for example in kept:
            by_name = dict(zip(example.decision.outcomes, example.targets, strict=True))
            assert len(by_name) == MAX_OUTCOMES
            assert (by_name["name 3"], by_name["name 60"]) == (0.75, 0.25)
            assert sum(example.targets) == pytest.approx(1.0)
            assert list(by_name) == sorted(by_name, key=names.index), "in the order asked"
        assert len({name for example in kept for name in example.decision.outcomes}) > 60

    def test_rewards_are_scaled_over_all_outcomes(self) -> None:
        from steelyard.trainer.units import thinned

        rewards = np.linspace(-4.0, 6.0, 40)
        names = tuple(f"name {index}" for index in range(40))
        row = TuningRow("a", "a", RenderedDecision("single", "Which?", names), rewards)
        example = thinned(row, "reward", np.random.default_rng(0))
        by_name = dict(zip(example.decision.outcomes, example.targets, strict=True))
        assert (by_name["name 0"], by_name["name 39"]) == (0.0, 1.0)
        for name, value in by_name.items():
            assert value == pytest.approx(int(name.split()[1]) / 39)

    def test_neighbours_of_one_context_are_read_together(self) -> None:
        from steelyard.scoring.assets import read_base_files
        from steelyard.trainer.units import lay_out_units, usable_groups

        tokenizer = read_base_files().tokenizer
        place = make_row(0)
        check = TuningRow(place.context, place.context_sha256, CHECK, np.array([0.0, 1.0]))
        groups = usable_groups([place, check, make_row(1)], "sft", tokenizer)
        assert [len(group) for group in groups] == [2, 1]
        (unit,) = lay_out_units(groups[0], "sft", tokenizer, np.random.default_rng(0))
        assert unit.item.layout.kinds == ("single", "binary")
        # A context that leaves no room for both is read once for each.
        long = " ".join(["bank"] * 480)
        pair = [TuningRow(long, "long", row.decision, row.labels) for row in (place, check)]
        units = lay_out_units(tuple(pair), "sft", tokenizer, np.random.default_rng(0))
        assert [unit.item.layout.kinds for unit in units] == [("single",), ("binary",)]

    def test_rows_without_a_lesson_are_left_out(self, tmp_path) -> None:
        from steelyard.scoring.assets import read_base_files
        from steelyard.trainer.units import usable_groups

        tokenizer = read_base_files().tokenizer
        equal = TuningRow("a", "a", TOPIC, np.full(4, 2.0))
        assert usable_groups([equal], "reward", tokenizer) == []
        asked = RenderedDecision("single", " ".join(["station"] * 600), TOPIC.outcomes)
        too_long = TuningRow("a", "a", asked, np.eye(4)[0])
        assert usable_groups([too_long], "sft", tokenizer) == []
        with pytest.raises(ValueError, match="No row can be trained on"):
            train(tmp_path, [too_long])


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, list[tuple[int, float, float]]]:
    reported: list[tuple[int, float, float]] = []
    merged = train(
        tmp_path_factory.mktemp("lora"),
        on_step=lambda *report: reported.append(report),
        heldout=make_rows(36)[24:],
    )
    return merged, reported


@needs_torch
@pytest.mark.slow
class TestTraining:
    def test_it_learns_and_both_engines_serve_it(self, trained) -> None:
        from steelyard.scoring.assets import load_base_model
        from steelyard.scoring.merging import merged_scorer, read_adapter

        merged, reported = trained
        assert [step for step, _, _ in reported] == list(range(1, STEPS + 1))
        assert np.mean([loss for _, loss, _ in reported[-3:]]) < 0.8 * reported[0][1]
        rates = [rate for _, _, rate in reported]
        assert max(rates) == pytest.approx(2e-3)
        assert rates[-1] < 0.2 * max(rates)
        facts = read_adapter(merged).facts
        assert facts.parity < 1e-3
        assert facts.parity_decisions == 12
        heldout = make_rows(36)[24:]
        for engine in ("onnxruntime-float32", "onnxruntime-int8"):
            before = mean_right(load_base_model(engine).scorer, heldout)
            after = mean_right(merged_scorer(None, merged, engine=engine), heldout)
            assert after > before + 0.2
        assert sum(path.stat().st_size for path in merged.iterdir()) < 1_500_000

    def test_a_finished_run_is_not_trained_again(self, trained) -> None:
        merged, _ = trained
        before = contents(merged)
        again = train(merged.parent, on_step=pytest.fail, heldout=make_rows(36)[24:])
        assert contents(again) == before

    def test_a_killed_run_ends_as_an_unbroken_one(self, trained, tmp_path) -> None:
        merged, _ = trained
        child = (
            "import os, signal; from trainer import test_lora as t; from pathlib import Path\n"
            f"t.train(Path({str(tmp_path)!r}), heldout=t.make_rows(36)[24:], on_step="
            "lambda step, loss, rate: step == 11 and os.kill(os.getpid(), signal.SIGKILL))"
        )
        paths = os.pathsep.join(path for path in sys.path if path)
        killed = subprocess.run(
            [sys.executable, "-c", child], env={**os.environ, "PYTHONPATH": paths}, check=False
        )
        assert killed.returncode == -signal.SIGKILL
        assert not (tmp_path / "merged").exists()
        steps: list[int] = []
        resumed = train(
            tmp_path, heldout=make_rows(36)[24:], on_step=lambda step, *_: steps.append(step)
        )
        assert steps == [11, 12], "from the checkpoint of step 10"
        assert contents(resumed) == contents(merged)

    def test_other_settings_start_anew(self, trained, tmp_path) -> None:
        merged, _ = trained
        shutil.copytree(merged.parent, tmp_path / "run")
        steps: list[int] = []
        other = train(
            tmp_path / "run", seed=4, steps=2, on_step=lambda step, *_: steps.append(step)
        )
        assert steps == [1, 2]
        assert contents(other) != contents(merged)

    def test_an_adapter_is_continued(self, trained, tmp_path) -> None:
        from steelyard.scoring.merging import merged_scorer, read_adapter

        merged, reported = trained
        losses: list[float] = []
        wider = train(
            tmp_path,
            parent=merged,
            rank=6,
            steps=2,
            on_step=lambda step, loss, rate: losses.append(loss),
        )
        assert losses[0] < 0.8 * reported[0][1]
        assert {a.shape[0] for a, _ in read_adapter(wider).pairs.values()} == {6}
        heldout = make_rows(36)[24:]
        scores = [mean_right(merged_scorer(None, folder), heldout) for folder in (merged, wider)]
        assert scores[1] > scores[0] - 0.1

    def test_rewards_teach_the_best_outcome(self, tmp_path) -> None:
        from steelyard.scoring.assets import load_base_model
        from steelyard.scoring.merging import merged_scorer

        merged = train(tmp_path, make_rows(reward=True), method="reward")
        heldout = make_rows(36)[24:]
        before = mean_right(load_base_model().scorer, heldout)
        assert mean_right(merged_scorer(None, merged), heldout) > before + 0.2

    def test_a_loss_that_is_not_finite_stops_it(self, tmp_path) -> None:
        rows = [TuningRow("a", "a", TOPIC, np.array([np.inf, 0.0, 0.0, 0.0]))]
        with np.errstate(invalid="ignore"), pytest.raises(FloatingPointError, match="lower"):
            train(tmp_path, rows)
        assert not (tmp_path / "merged").exists()

    def test_a_merge_that_differs_from_the_trained_model_is_not_written(
        self, monkeypatch, tmp_path
    ) -> None:
        from steelyard.trainer import merging

        monkeypatch.setattr(merging, "PARITY", 0.0)
        with pytest.raises(merging.ParityError, match="not served"):
            train(tmp_path, steps=1)
        assert not (tmp_path / "merged").exists()


@needs_torch
@pytest.mark.parametrize("rank", [2, 3, 5])
def test_a_pair_keeps_its_product_at_another_rank(rank) -> None:
    from steelyard.trainer.adapting import resized

    rng = np.random.default_rng(rank)
    a, b = rng.normal(size=(3, 20)), rng.normal(size=(30, 3))
    fresh = rng.normal(size=(rank, 20)), np.zeros((30, rank))
    new_a, new_b = resized((a, b), rank, fresh)
    assert (new_a.shape, new_b.shape) == ((rank, 20), (30, rank))
    gap = np.linalg.norm(new_b @ new_a - b @ a)
    lost = np.linalg.svd(b @ a)[1][rank:]
    assert gap == pytest.approx(np.linalg.norm(lost), abs=1e-5)
