"""From a trained checkpoint to the weights that ship: int8 with one scale an output channel.

Weights are stored once, in int8 (symmetric, per output channel: Jacob et al. 2018; Nagel et al.
2021). The float32 engine dequantises them at load; the int8 engine multiplies them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from steelyard.training.graph import Shape

Array = NDArray[np.generic]
_LINEAR = ("attention_output", "feed_forward_in", "feed_forward_out")


def quantize_columns(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise a float32 matrix to int8 with one scale a column.

    Parameters
    ----------
    weight : float32 array of shape (n_in, n_out)

    Returns
    -------
    int8 array of shape (n_in, n_out), float32 array of shape (n_out,)
        ``weight`` is about ``stored * scale``; no element is off by more than half a scale.
    """
    scale = np.maximum(np.abs(weight).max(axis=0), 1e-12) / 127.0
    stored = np.clip(np.rint(weight / scale), -127, 127).astype(np.int8)
    return stored, scale.astype(np.float32)


def pack_weights(
    state: Mapping[str, NDArray[np.float32]], shape: Shape
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Turn a checkpoint's float32 tensors into the stored weights.

    Queries, keys and values become one matrix, with the attention's scaling folded into the
    queries; matrices are transposed to (n_in, n_out).

    Returns
    -------
    dict of str to array
        The word embeddings: they never change, so that builds share the file.
    dict of str to array
        Everything else.
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


def _store(
    into: dict[str, Array], name: str, weight: NDArray[np.float32], bias: NDArray[np.float32]
) -> None:
    stored, scale = quantize_columns(np.ascontiguousarray(weight))
    into[f"{name}.weight"], into[f"{name}.scale"] = stored, scale
    into[f"{name}.bias"] = np.ascontiguousarray(bias)
