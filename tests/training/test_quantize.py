from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.reference import read_stored
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.training.shape import Shape
from steelyard_base_recipe import quantize
from steelyard_base_recipe.graph import ActivationScale
from steelyard_base_recipe.quantize import LINEARS, activation_scales, best_scale
from support.decisions.strategies import few
from support.models.random_model import make_words, sample_requests


def restore(values: np.ndarray, scale: ActivationScale) -> np.ndarray:
    """Store values as the graph does and read them again."""
    stored = np.clip(np.rint(values / scale.scale) + scale.zero_point, 0, 255)
    return (stored - scale.zero_point) * scale.scale


def naive(values: np.ndarray) -> ActivationScale:
    """Cover the whole range."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 1e-6)
    scale = (high - low) / 255
    return ActivationScale(scale, round(-low / scale))


def loss(values: np.ndarray, scale: ActivationScale) -> float:
    return float(np.square(restore(values, scale) - values).mean())


@few
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["normal", "positive", "skewed", "outliers", "negative", "zero"]),
    st.floats(1e-3, 1e3),
)
def test_zero_is_exact_and_nothing_is_lost_to_the_naive_choice(
    seed: int, form: str, size: float
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=2_000) * size
    if form == "positive":
        values = abs(values)
    elif form == "negative":
        values = -abs(values)
    elif form == "skewed":
        values = np.where(values > 0, values * 10, values)
    elif form == "outliers":
        values[:3] *= 40
    elif form == "zero":
        values = np.zeros(10)
    values = values.astype(np.float32)
    chosen = best_scale(values)
    assert isinstance(chosen.zero_point, int)
    assert 0 <= chosen.zero_point <= 255
    assert chosen.scale > 0
    assert np.isfinite(chosen.scale)
    assert restore(np.zeros(1), chosen).item() == 0
    assert loss(values, chosen) <= loss(values, naive(values)) * (1 + 1e-6) + 1e-30


def test_outliers_are_clipped_where_that_loses_less() -> None:
    values = np.random.default_rng(0).normal(size=50_000).astype(np.float32)
    values[0] = 30
    chosen = best_scale(values)
    assert loss(values, chosen) < 0.95 * loss(values, naive(values))
    assert chosen.scale < naive(values).scale


def test_values_without_a_sign_use_every_level() -> None:
    chosen = best_scale(np.linspace(0, 5, 1_000, dtype=np.float32))
    assert chosen.zero_point == 0
    assert chosen.scale == pytest.approx(5 / 255, rel=0.06)


def test_every_linear_layer_of_the_encoder_gets_a_scale(random_folder, tokenizer) -> None:
    requests = sample_requests()[:4]
    stored = read_stored(random_folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantize, "SAMPLE", 2_000)
        scales, again = (
            activation_scales(stored, Shape.of(stored), tokenizer, requests) for _ in range(2)
        )
    assert set(scales) == {
        f"layers.{layer}.{part}" for layer in range(Shape().n_layers) for part in LINEARS
    }
    assert all(scale.scale > 0 and 0 <= scale.zero_point <= 255 for scale in scales.values())
    assert again == scales
    # What goes into the last layer is the output of a GELU: hardly anything below zero.
    assert scales["layers.0.feed_forward_out"].zero_point < scales["layers.0.qkv"].zero_point


def test_requests_of_more_than_one_pass_are_left_out(random_folder, tokenizer) -> None:
    long = RenderedRequest(make_words(3_000), (RenderedDecision("binary", "?", ("yes", "no")),))
    stored = read_stored(random_folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantize, "SAMPLE", 500)
        short = sample_requests()[:1]
        one, other = (
            activation_scales(stored, Shape.of(stored), tokenizer, requests)
            for requests in (short, [*short, long])
        )
    assert one == other
