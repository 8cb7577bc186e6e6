"""From a trained checkpoint to the weights that ship: int8 with one scale an output channel.

Weights are stored once, in int8 (symmetric, per output channel: Jacob et al. 2018; Nagel et al.
2021). The float32 engine dequantises them at load; the int8 engine multiplies them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.merging import quantize_columns
from steelyard.training.shape import Shape

Array = NDArray[np.generic]
_LINEAR = ("attention_output", "feed_forward_in", "feed_forward_out")


def pack_weights(
    state: Mapping[str, NDArray[np.float32]], shape: Shape
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Turn a checkpoint's float32 tensors into the stored weights.

    Queries, keys and values become one matrix, with the attention's scaling folded into the
    queries; matrices are transposed to (n_in, n_out).
    """
    words, word_scale = quantize_columns(state["word_embeddings.weight"].T)
    embeddings: dict[str, Array] = {
        "word_embeddings.weight": np.ascontiguousarray(words.T),
        "word_embeddings.scale": word_scale,
    }
    rest: dict[str, Array] = {
        name: state[name]
        for name in (
            "position_embeddings.weight",
            "role_embeddings.weight",
            "embedding_norm.weight",
            "embedding_norm.bias",
            "similarity_weight",
        )
    }
    for name in ("level_projection", "similarity_projection", "logit"):
        rest[f"{name}.weight"] = np.ascontiguousarray(state[f"{name}.weight"].T)
    if state["similarity_gate.weight"].any():
        rest["similarity_gate.weight"] = np.ascontiguousarray(state["similarity_gate.weight"].T)
    blocks = [(f"layers.{i}", shape.n_heads) for i in range(shape.n_layers)]
    for block, n_heads in [*blocks, ("set_layer", shape.set_heads)]:
        scaling = np.float32((shape.width // n_heads) ** -0.5)
        parts = [state[f"{block}.{part}.weight"].T for part in ("query", "key", "value")]
        biases = [state[f"{block}.{part}.bias"] for part in ("query", "key", "value")]
        parts[0], biases[0] = parts[0] * scaling, biases[0] * scaling
        _store(rest, f"{block}.qkv", np.concatenate(parts, axis=1), np.concatenate(biases))
        for part in _LINEAR:
            name = f"{block}.{part}"
            _store(rest, name, state[f"{name}.weight"].T, state[f"{name}.bias"])
        for part in ("attention_norm", "output_norm"):
            for kind in ("weight", "bias"):
                rest[f"{block}.{part}.{kind}"] = state[f"{block}.{part}.{kind}"]
    return embeddings, rest


def unpack_weights(stored: Mapping[str, Array], shape: Shape) -> dict[str, NDArray[np.float32]]:
    """Turn stored weights back into a checkpoint's tensors, to go on training from them.

    Every matrix is within half a quantisation step of the packed one.
    """
    words: NDArray[np.float32] = np.multiply(
        stored["word_embeddings.weight"], stored["word_embeddings.scale"][:, None], dtype=np.float32
    )
    state = {"word_embeddings.weight": words}
    for name in ("position_embeddings.weight", "role_embeddings.weight", "similarity_weight"):
        state[name] = np.asarray(stored[name], np.float32)
    for part in ("weight", "bias"):
        state[f"embedding_norm.{part}"] = np.asarray(stored[f"embedding_norm.{part}"], np.float32)
    for name in ("level_projection", "similarity_projection", "logit"):
        state[f"{name}.weight"] = np.asarray(stored[f"{name}.weight"].T, np.float32)
    # A model without a gate is one whose gate is open.
    gate = stored.get("similarity_gate.weight", np.zeros((shape.width, 3), np.float32))
    state["similarity_gate.weight"] = np.ascontiguousarray(gate.T, np.float32)
    blocks = [(f"layers.{i}", shape.n_heads) for i in range(shape.n_layers)]
    for block, n_heads in [*blocks, ("set_layer", shape.set_heads)]:
        scaling = np.float32((shape.width // n_heads) ** -0.5)
        weight, bias = _load(stored, f"{block}.qkv")
        for index, part in enumerate(("query", "key", "value")):
            factor = scaling if part == "query" else np.float32(1.0)
            columns = slice(index * shape.width, (index + 1) * shape.width)
            state[f"{block}.{part}.weight"] = np.ascontiguousarray(weight[:, columns].T) / factor
            state[f"{block}.{part}.bias"] = bias[columns] / factor
        for part in _LINEAR:
            weight, bias = _load(stored, f"{block}.{part}")
            state[f"{block}.{part}.weight"] = np.ascontiguousarray(weight.T)
            state[f"{block}.{part}.bias"] = bias
        for part in ("attention_norm", "output_norm"):
            for kind in ("weight", "bias"):
                name = f"{block}.{part}.{kind}"
                state[name] = np.asarray(stored[name], np.float32)
    return state


def _load(
    stored: Mapping[str, Array], name: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    weight = np.multiply(stored[f"{name}.weight"], stored[f"{name}.scale"], dtype=np.float32)
    return weight, np.asarray(stored[f"{name}.bias"], np.float32)


def _store(
    into: dict[str, Array], name: str, weight: NDArray[np.float32], bias: NDArray[np.float32]
) -> None:
    stored, scale = quantize_columns(np.ascontiguousarray(weight))
    into[f"{name}.weight"], into[f"{name}.scale"] = stored, scale
    into[f"{name}.bias"] = np.ascontiguousarray(bias)
