"""A trained and a served model are one."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the train extra: pip install steelyard[train]")

import torch

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.assets import load_base_model
from steelyard.scoring.engine import FLOAT32, Engine
from steelyard.scoring.onnx import OnnxScorer
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.batches import make_batches, make_item
from steelyard.training.examples import WordedDecision
from steelyard.training.model import PackedScorer
from steelyard.training.shape import Shape
from steelyard.training.weights import pack_weights, quantize_columns
from steelyard_base_recipe import quantize
from steelyard_base_recipe.checkpoints import (
    mean_weights,
    read_details,
    read_scorer,
    read_weights,
)
from steelyard_base_recipe.export import write_model
from steelyard_base_recipe.graph import build
from support.models.random_model import make_state, make_tokenizer_json, make_words, sample_requests

KEPT_AS_THEY_ARE = ("position", "role", "level", "similarity", "logit")


def as_stored(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Round matrices to values that int8 holds, so that storing them loses nothing."""
    rounded = dict(state)
    for name, value in state.items():
        if value.ndim == 2 and not name.startswith(KEPT_AS_THEY_ARE):
            stored, scale = quantize_columns(value.T)
            rounded[name] = np.ascontiguousarray((stored * scale).T, np.float32)
    return rounded


@pytest.fixture(scope="module")
def state() -> dict[str, np.ndarray]:
    return as_stored(make_state(5))


@pytest.fixture(scope="module")
def trained(state) -> PackedScorer:
    model = PackedScorer().eval()
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    return model


def requests() -> list[RenderedRequest]:
    short = sample_requests()[:6]
    # Windows of a context, of a question and of an outcome.
    long = RenderedRequest(
        make_words(270),
        (
            RenderedDecision("ordinal", make_words(4), ("0: cold", "1: slow", "2")),
            RenderedDecision("single", make_words(150), ("bank", "late train")),
        ),
    )
    outcome = RenderedRequest(
        make_words(9), (RenderedDecision("single", "Which?", ("card", make_words(140))),)
    )
    sentences = RenderedRequest(
        f"{make_words(20, 1)}. {make_words(90, 2)}! {make_words(9, 3)}.",
        (
            RenderedDecision("single", "Which?", ("A) city", "B) coldRiver")),
            RenderedDecision("binary", "Is the river cold?", ("yes", "no")),
        ),
    )
    return [*short, long, outcome, sentences]


def logits_of(
    model: PackedScorer, request: RenderedRequest, *, apart: int, tokenizer: Tokenizer
) -> np.ndarray:
    """Return the trained model's logits of a request, its lowest layers apart."""
    examples = [
        WordedDecision(d, (1.0,) + (0.0,) * (len(d.outcomes) - 1)) for d in request.decisions
    ]
    (batch,) = make_batches([make_item(request.context, examples, tokenizer)])
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "apart", apart)
        return model(batch)[0].numpy()


def test_the_state_has_the_models_names_and_shapes(state) -> None:
    expected = {name: tuple(value.shape) for name, value in PackedScorer().state_dict().items()}
    assert {name: value.shape for name, value in state.items()} == expected


@pytest.mark.parametrize("apart", [0, 3])
def test_the_graph_gives_the_logits_of_the_trained_model(state, trained, tokenizer, apart) -> None:
    words, rest = pack_weights(state, Shape())
    graph = build(Shape.of(rest, apart)).SerializeToString()
    engine = Engine(graph, {**words, **rest}, precision=FLOAT32)
    scorer = OnnxScorer(engine, tokenizer, name="parity", engine_name="parity")
    for request in requests():
        logits = logits_of(trained, request, apart=apart, tokenizer=tokenizer)
        for index, served in enumerate(scorer.score([request])[0]):
            n = len(served.logits)
            # Training cuts a text alone to a row less two; longer ones are not in this test.
            assert served.logits == pytest.approx(logits[index, :n], abs=1e-3)
            assert (logits[index, n:] == -np.inf).all()


def test_a_checkpoint_becomes_a_folder_that_loads(state, trained, tokenizer, tmp_path) -> None:
    recipe = {"seed": 1, "apart": 3}
    content = {"model": trained.state_dict(), "state": {"step": 3}, "recipe": recipe}
    torch.save(content, tmp_path / "checkpoint.pt")
    checkpoint = tmp_path / "checkpoint.pt"
    assert read_details(checkpoint) == {"state": {"step": 3}, "recipe": recipe}
    assert read_scorer(checkpoint).apart == 3
    read = {name: value.numpy() for name, value in read_weights(checkpoint).items()}
    assert all(np.array_equal(read[name], value) for name, value in state.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantize, "SAMPLE", 2_000)
        sample = sample_requests()[:4]
        write_model(read, make_tokenizer_json(), sample, tmp_path / "out", "trial", apart=3)
    assert read_scorer(tmp_path / "out").apart == 3
    asked = sample_requests()[0]
    logits = logits_of(trained, asked, apart=3, tokenizer=tokenizer)
    for engine, tolerance in (("onnxruntime-float32", 1e-3), ("onnxruntime-int8", np.inf)):
        model = load_base_model(engine, folder=tmp_path / "out")
        assert model.scorer.name == "trial"
        for _ in range(2):  # its questions unknown, then known
            (scored,) = model.scorer.score([asked])
            for mine, trained_logits in zip(scored, logits, strict=True):
                assert np.isfinite(mine.logits).all()
                n = len(mine.logits)
                assert abs(mine.logits - trained_logits[:n]).max() <= tolerance
                assert (trained_logits[n:] == -np.inf).all()


def test_a_mean_of_weights_counts_each_as_often_as_it_is_named(trained, tmp_path) -> None:
    paths = []
    for at, scale in enumerate((1.0, 3.0)):
        weights = {name: scale * value for name, value in trained.state_dict().items()}
        paths.append(tmp_path / f"{at}.pt")
        torch.save({"model": weights}, paths[-1])
    mean = mean_weights([*paths, paths[1]])
    for name, value in trained.state_dict().items():
        assert torch.allclose(mean[name], value * 7 / 3, atol=1e-6)


def test_a_mean_takes_a_base_models_folder_too(state, trained, tmp_path) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    torch.save({"model": trained.state_dict()}, checkpoint)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantize, "SAMPLE", 2_000)
        write_model(state, make_tokenizer_json(), sample_requests()[:4], tmp_path / "out", "trial")
    stored = read_weights(tmp_path / "out")
    mean = mean_weights([checkpoint, tmp_path / "out"])
    assert mean.keys() == state.keys()
    for name, value in mean.items():
        assert np.allclose(value, (state[name] + stored[name].numpy()) / 2, atol=1e-6)
