"""The training loop on tiny data, with a model of one narrow layer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="training needs the train extra: pip install steelyard[train]")

import numpy as np
import torch

from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training import model as model_module
from steelyard.training.batches import make_batches, make_item
from steelyard.training.model import PackedScorer
from steelyard_base_recipe import anchor as anchor_module
from steelyard_base_recipe import behaviours
from steelyard_base_recipe.augment import plain_examples
from steelyard_base_recipe.beginning import load_encoder
from steelyard_base_recipe.behaviour.everyday import everyday_figures, everyday_requests
from steelyard_base_recipe.behaviour.figures import figures
from steelyard_base_recipe.behaviour.rows import make_rows, read_domains
from steelyard_base_recipe.calibrate import calibration_set
from steelyard_base_recipe.checkpoints import CHECKPOINT, read_scorer
from steelyard_base_recipe.compare_starts import StartJudge
from steelyard_base_recipe.mixture import Mixture, load_mixture, read_rows
from steelyard_base_recipe.trainer import LOG, BaseRecipe, BaseTrainer

#: Tokens of a step, about: requests and texts alone.
STEP = 1_000


class StoppedError(Exception):
    """The plug was pulled."""


@pytest.fixture(autouse=True)
def small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "FEED_FORWARD", 64)
    monkeypatch.setattr(model_module, "SET_FEED_FORWARD", 64)


@pytest.fixture(autouse=True)
def one_thread():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def make_model(apart: int = 0, n_layers: int = 1) -> PackedScorer:
    torch.manual_seed(0)
    return PackedScorer(apart=apart, n_layers=max(n_layers, apart + 1))


@pytest.fixture
def make_trainer(mixture: Mixture, tokenizer: Tokenizer, tmp_path: Path):
    def make(
        folder: str = "run",
        report: Any = lambda line: None,
        teacher: PackedScorer | None = None,
        *,
        behaves: bool = False,
        **fields: Any,
    ) -> BaseTrainer:
        recipe = BaseRecipe(
            **{
                "tokens": 20 * STEP,
                "tokens_per_step": 200,
                "learning_rate": 1e-3,
                "new_learning_rate": 1e-3,
                "warmup_steps": 2,
                "anchor": 0.0,
                "validate_every": 10**9,
                "validation_rows": 8,
                **fields,
            }
        )
        return BaseTrainer(
            make_model(recipe.apart),
            mixture,
            # The tasks trained on: what is tested here is whether anything is learned.
            {source: rows[:8] for source, rows in mixture.rows.items()},
            tokenizer,
            recipe,
            tmp_path / folder,
            torch.device("cpu"),
            report,
            make_model(),
            teacher,
            behaves=behaves,
        )

    return make


def weights_of(trainer: BaseTrainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def test_training_lowers_the_loss(make_trainer) -> None:
    trainer = make_trainer(anchor=0.1, tokens=24 * STEP)
    before = trainer.validate()["mean"]["log_loss"]
    words = trainer.model.word_embeddings.weight.clone()
    state = trainer.run()
    assert state.step >= 15
    assert state.tokens >= 24 * STEP
    after = trainer.validate()["mean"]["log_loss"]
    assert after < 0.9 * before
    assert torch.equal(trainer.model.word_embeddings.weight, words), "words are not trained"


@pytest.mark.parametrize("anchor", [0.0, 2.0])
def test_a_run_that_was_stopped_ends_where_an_unbroken_one_does(
    make_trainer, monkeypatch, anchor
) -> None:
    # The last bits of an anchor's vector hang on what is encoded with it, and a resumed run has kept
    # none yet.
    monkeypatch.setattr(anchor_module, "MAX_CACHED", 0)
    options = {"validate_every": 6 * STEP, "anchor": anchor}
    unbroken = make_trainer("unbroken", **options)
    unbroken.run()
    lines: list[dict[str, Any]] = []

    def stop(line: dict[str, Any]) -> None:
        lines.append(line)
        if sum("validation" in line for line in lines) == 2:
            raise StoppedError

    stopped = make_trainer("broken", stop, **options)
    with pytest.raises(StoppedError):
        stopped.run()
    saved = torch.load(stopped.folder / CHECKPOINT, weights_only=True)["state"]
    assert 0 < saved["step"] < stopped.state.step, "the plug was pulled after the last checkpoint"
    resumed = make_trainer("broken", **options)
    assert resumed.state.step == saved["step"]
    assert resumed.state.tokens == saved["tokens"]
    state = resumed.run()
    assert (state.step, state.tokens) == (unbroken.state.step, unbroken.state.tokens)
    expected = weights_of(unbroken)
    for name, value in weights_of(resumed).items():
        assert torch.allclose(value, expected[name], rtol=0, atol=1e-6), name


def test_the_precision_is_that_of_every_matrix_product(make_trainer, monkeypatch) -> None:
    seen = set()
    linear = torch.nn.functional.linear

    def watched(*arguments: Any) -> torch.Tensor:
        made = linear(*arguments)
        seen.add(made.dtype)
        return made

    monkeypatch.setattr(torch.nn.functional, "linear", watched)
    for precision, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        seen.clear()
        make_trainer(precision, tokens=STEP, anchor=1.0, precision=precision).run()
        assert seen == {dtype}


def test_a_precision_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'float8'; expected one of bfloat16, float32"):
        BaseRecipe(precision="float8")


def test_a_finished_run_is_not_trained_further(make_trainer) -> None:
    make_trainer().run()
    again = make_trainer()
    step, before = again.state.step, weights_of(again)
    assert again.run().step == step
    after = weights_of(again)
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_the_log_has_losses_against_tokens(make_trainer) -> None:
    reported: list[dict[str, Any]] = []
    trainer = make_trainer(report=reported.append, validate_every=8 * STEP)
    trainer.run()
    lines = [json.loads(line) for line in (trainer.folder / LOG).read_text().splitlines()]
    assert lines == reported
    validations = [line for line in lines if "validation" in line]
    assert len(validations) >= 2
    assert [line["tokens"] for line in validations] == sorted(
        {line["tokens"] for line in validations}
    )
    for line in validations:
        assert set(line["validation"]) == {"tickets", "labels", "mean"}
        assert line["validation"]["mean"]["log_loss"] > 0


def test_validations_ask_the_behaviour_suite(make_trainer, monkeypatch, tokenizer) -> None:
    few = make_rows(read_domains()[:2])
    monkeypatch.setattr(behaviours, "make_rows", lambda: few)
    lines: list[dict[str, Any]] = []
    trainer = make_trainer(report=lines.append, tokens=2 * STEP, behaves=True)
    trainer.run()
    [found] = [line["behaviour"] for line in lines if "validation" in line]
    again = behaviours.behaviours(trainer.model, tokenizer, trainer.autocast)
    assert found == pytest.approx(again, nan_ok=True)
    right = [np.eye(len(row.outcomes))[row.right] for row in few]
    assert set(found) == {one.name for one in figures(few, right)}
    assert trainer.model.training, "it goes on learning"


def test_a_teacher_answers_as_far_as_it_is_kept(make_trainer, mixture, tokenizer) -> None:
    row = mixture.rows["tickets"][0]
    examples = [replace(plain_examples(row)[0], teacher_share=share) for share in (0.0, 0.5, 1.0)]
    [batch] = make_batches([make_item(row.context, examples, tokenizer)])
    trainer = make_trainer(teacher=make_model(), anchor=1.0, tokens=4 * STEP, precision="float32")
    assert trainer.anchor is None, "a teacher reads those texts anyway"
    trainer.run()
    assert trainer.drifts[0] == pytest.approx(0.0, abs=1e-6), "the pupil begins as its teacher"
    assert trainer.drifts[-1] > 1e-6
    with torch.no_grad():
        logits, pooled = make_model()(batch)
        targets, vectors = trainer.teacher(batch)
    answers = torch.softmax(logits / 2.0, -1)
    labels = batch.targets
    expected = torch.stack([labels[0], (labels[1] + answers[1]) / 2, answers[2]])
    assert torch.allclose(targets, expected, atol=1e-6)
    assert torch.allclose(vectors, pooled, atol=1e-6)


def test_a_run_is_resumed_with_the_layers_apart_that_it_has(make_trainer) -> None:
    trainer = make_trainer(apart=1, tokens=2 * STEP)
    assert trainer.model.apart == 1
    before = weights_of(trainer)
    trainer.run()
    assert not torch.equal(trainer.model.layers[0].query.weight, before["layers.0.query.weight"])
    assert read_scorer(trainer.folder / CHECKPOINT).apart == 1
    with pytest.raises(ValueError, match=r"has apart 1, and 0 is asked for; .*--apart 1"):
        make_trainer(tokens=2 * STEP)
    assert make_trainer(apart=1).state.tokens >= 2 * STEP


def test_layers_apart_leave_one_that_joins() -> None:
    with pytest.raises(ValueError, match="apart is 1; expected 0 to 0"):
        PackedScorer(apart=1, n_layers=1)


def test_another_seed_is_another_run(make_trainer) -> None:
    options = {"tokens": 2 * STEP}
    one, same, other = (
        make_trainer(folder, seed=seed, **options)
        for folder, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    for trainer in (one, same, other):
        trainer.run()
    assert torch.equal(one.model.logit.weight, same.model.logit.weight)
    assert not torch.equal(one.model.logit.weight, other.model.logit.weight)


def test_weights_are_kept_from_the_tokens_asked_for(make_trainer) -> None:
    trainer = make_trainer(tokens=12 * STEP, validate_every=4 * STEP, keep_at=5 * STEP)
    trainer.run()
    kept = [torch.load(path, weights_only=True) for path in trainer.folder.glob("weights-*.pt")]
    seen = sorted(one["state"]["tokens"] for one in kept)
    validated = [
        json.loads(line)["tokens"]
        for line in (trainer.folder / LOG).read_text().splitlines()
        if "validation" in line
    ]
    assert seen == [tokens for tokens in validated if tokens >= 5 * STEP]
    assert len(seen) >= 2
    first, last = sorted(kept, key=lambda one: one["state"]["tokens"])[:: len(kept) - 1]
    assert not torch.equal(first["model"]["logit.weight"], last["model"]["logit.weight"])


def test_a_loss_that_is_not_finite_stops_the_run(make_trainer) -> None:
    trainer = make_trainer()
    with torch.no_grad():
        trainer.model.logit.weight.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        trainer.run()
    assert not (trainer.folder / CHECKPOINT).exists()


def test_a_run_stopped_on_the_way_goes_on_as_if_it_had_not(make_trainer) -> None:
    options = {"tokens": 6 * STEP, "save_every_s": 1e9, "precision": "float32"}
    whole = make_trainer("whole", **options)
    whole.run()
    lines: list[dict[str, Any]] = []
    first = make_trainer("parts", lines.append, **options)
    assert first.run(2 * STEP).tokens < 6 * STEP
    assert not lines, "a stop is no end"
    second = make_trainer("parts", **options)
    assert second.state.tokens == first.state.tokens
    second.run()
    assert torch.equal(second.model.logit.weight, whole.model.logit.weight)


def test_a_start_gives_its_layers_and_segments(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    size, names = model_module.WIDTH, {"intermediate.dense": 64, "output.dense": 64}
    source = {
        "embeddings.word_embeddings.weight": (model_module.VOCABULARY, size),
        "embeddings.position_embeddings.weight": (model_module.N_POSITIONS, size),
        "embeddings.token_type_embeddings.weight": (2, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    for layer in range(3):
        for part in ("query", "key", "value"):
            source[f"encoder.layer.{layer}.attention.self.{part}.weight"] = (size, size)
            source[f"encoder.layer.{layer}.attention.self.{part}.bias"] = (size,)
        for part in ("attention.output", "output"):
            n_in = names.get(f"{part}.dense", size)
            source[f"encoder.layer.{layer}.{part}.dense.weight"] = (size, n_in)
            source[f"encoder.layer.{layer}.{part}.dense.bias"] = (size,)
            for kind in ("weight", "bias"):
                source[f"encoder.layer.{layer}.{part}.LayerNorm.{kind}"] = (size,)
        source[f"encoder.layer.{layer}.intermediate.dense.weight"] = (64, size)
        source[f"encoder.layer.{layer}.intermediate.dense.bias"] = (64,)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in source.items()}
    model = PackedScorer(n_layers=2)
    load_encoder(model, weights, (0, 2), has_pairs=True)
    top = model.layers[1].feed_forward_in.weight.detach().numpy()
    assert np.array_equal(top, weights["encoder.layer.2.intermediate.dense.weight"])
    segments = weights["embeddings.token_type_embeddings.weight"]
    roles = model.role_embeddings.weight.detach().numpy()
    assert np.array_equal(roles, segments[[1, 0, 0, 0, 0]])
    with pytest.raises(ValueError, match="3 layers to use, and the model 2"):
        load_encoder(PackedScorer(n_layers=2), weights, (0, 1, 2))


def test_starts_are_compared_on_unseen_questions(make_trainer, data) -> None:
    rows = [row for row in read_rows(data / "train.jsonl.gz") if row.source == "tickets"][:3]
    mixture, validation = load_mixture(data, ("clear",))
    judge = StartJudge({"tickets": rows}, calibration_set(validation, mixture))
    found = judge(make_trainer())
    everyday = found["everyday"]
    assert 0 <= everyday["flips"] <= 1
    assert 0 <= everyday["auc"] <= 1
    assert found["tasks"]["tickets"]["log_loss"] > 0
    assert found["tasks"]["tickets"]["n"] > 0
    assert found["held_out"].items() <= found["tasks"]["tickets"].items()


def test_everyday_questions_are_answered_yes_and_no() -> None:
    requests = everyday_requests()
    assert len(requests) == 60
    right = iter([np.array([[0.9, 0.1], [0.2, 0.8]])] * len(requests))
    figures = everyday_figures(lambda _: list(next(right)))
    assert (figures.accuracy, figures.flips, figures.pairs, figures.auc) == (1, 1, 1, 1)
    same = everyday_figures(lambda _: [np.array([0.6, 0.4])] * 2)
    assert (same.accuracy, same.flips, same.pairs, same.auc) == (0.5, 0, 0, 0.5)
    assert not {request.context for request in requests} & {row.context for row in make_rows()}
