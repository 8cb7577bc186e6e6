"""Static activation scales for the int8 graph.

For every linear layer of the encoder: one scale and zero point for its input, chosen on sample
requests to lose least to rounding and clipping together (mean squared error; Nagel et al. 2021).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.engine import FLOAT32, Engine
from steelyard.scoring.onnx import PACKED_TOKENS, OnnxScorer
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.shape import Shape
from steelyard_base_recipe.graph import ActivationScale, build

#: Values kept of each layer's input.
SAMPLE = 100_000
#: Shares of the full range that are tried on each side.
SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
LINEARS = ("qkv", "attention_output", "feed_forward_in", "feed_forward_out")


def best_scale(values: NDArray[np.float32]) -> ActivationScale:
    """Choose scale and zero point for a sample of an activation."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 1e-6)
    best, least = ActivationScale((high - low) / 255.0, 0), np.inf
    for low_share in SHARES if low < 0 else (1.0,):
        for high_share in SHARES:
            scale = (high * high_share - low * low_share) / 255.0
            zero_point = round(-low * low_share / scale)
            stored = np.clip(np.rint(values / scale) + zero_point, 0, 255)
            error = float(np.square((stored - zero_point) * scale - values).mean())
            if error < least:
                best, least = ActivationScale(scale, int(np.clip(zero_point, 0, 255))), error
    return best


def activation_scales(
    weights: dict[str, NDArray[np.generic]],
    shape: Shape,
    tokenizer: Tokenizer,
    requests: Sequence[RenderedRequest],
) -> dict[str, ActivationScale]:
    """Choose the scales of every linear layer of the encoder."""
    names = [f"layers.{i}.{part}" for i in range(shape.n_layers) for part in LINEARS]
    probes = tuple(f"probe.{name}" for name in names)
    graph = build(shape, probes=True).SerializeToString()
    engine = Engine(graph, weights, precision=FLOAT32)
    scorer = OnnxScorer(engine, tokenizer, name="calibration", engine_name="calibration")
    laid = [item for item in map(scorer.lay_out, requests) if len(item.layout) <= PACKED_TOKENS]
    rng = np.random.default_rng(0)
    groups = [laid[start : start + 16] for start in range(0, len(laid), 16)]
    samples: dict[str, list[NDArray[np.float32]]] = {name: [] for name in names}
    extremes: dict[str, list[float]] = {name: [0.0, 0.0] for name in names}
    for group in groups:
        inputs = scorer.plan(group, None)
        real = inputs["blocks"][..., 0].reshape(-1) != 0
        outputs = engine.run(inputs, probes)
        for name in names:
            values = outputs[f"probe.{name}"]
            values = values.reshape(-1, values.shape[-1])[real].reshape(-1).astype(np.float32)
            chosen = rng.integers(len(values), size=min(len(values), SAMPLE // len(groups)))
            samples[name].append(values[chosen])
            extremes[name][0] = min(extremes[name][0], float(values.min()))
            extremes[name][1] = max(extremes[name][1], float(values.max()))
    engine.close()
    return {
        name: best_scale(np.concatenate([*samples[name], np.asarray(extremes[name], np.float32)]))
        for name in names
    }
