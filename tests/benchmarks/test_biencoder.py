"""The baseline's graph against BERT written out in NumPy, on small random weights."""

from __future__ import annotations

import math

import numpy as np
import onnxruntime
import pytest

WIDTH, INNER, N_HEADS, N_LAYERS, VOCABULARY, POSITIONS = 16, 24, 4, 2, 50, 12


def make_weights():
    rng = np.random.default_rng(1)
    shapes = {
        "embeddings.word_embeddings.weight": (VOCABULARY, WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(N_LAYERS):
        prefix = f"encoder.layer.{layer}"
        linears = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        linears |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (INNER, WIDTH)}
        linears |= {"output.dense": (WIDTH, INNER)}
        for name, shape in linears.items():
            shapes |= {f"{prefix}.{name}.weight": shape, f"{prefix}.{name}.bias": shape[:1]}
        norms += [f"{prefix}.attention.output.LayerNorm", f"{prefix}.output.LayerNorm"]
    for name in norms:
        shapes |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def encode_by_hand(weights, ids):
    """Read one text without padding, one step after another."""

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normalise(x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    x += weights["embeddings.position_embeddings.weight"][: len(ids)]
    x += weights["embeddings.token_type_embeddings.weight"][0]
    x = normalise(x, "embeddings.LayerNorm")
    for layer in range(N_LAYERS):
        prefix = f"encoder.layer.{layer}"
        query, key, value = (
            linear(x, f"{prefix}.attention.self.{part}").reshape(len(ids), N_HEADS, -1)
            for part in ("query", "key", "value")
        )
        heads = []
        for head in range(N_HEADS):
            scores = query[:, head] @ key[:, head].T / math.sqrt(WIDTH / N_HEADS)
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            heads.append(shares / shares.sum(axis=-1, keepdims=True) @ value[:, head])
        mixed = linear(np.concatenate(heads, axis=-1), f"{prefix}.attention.output.dense")
        x = normalise(x + mixed, f"{prefix}.attention.output.LayerNorm")
        wide = linear(x, f"{prefix}.intermediate.dense")
        wide *= 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x = normalise(x + linear(wide, f"{prefix}.output.dense"), f"{prefix}.output.LayerNorm")
    pooled = x.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


def test_the_graph_is_bert_with_mean_pooling_and_ignores_padding(script):
    weights = make_weights()
    graph = script("biencoder").build_graph(weights, N_HEADS)
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    texts = [[3, 17, 42, 8, 1], [5], [9, 9, 30]]
    ids, mask = np.zeros((3, 7), dtype=np.int64), np.zeros((3, 7), dtype=np.float32)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1.0
    (vectors,) = session.run(None, {"input_ids": ids, "mask": mask})
    expected = np.stack([encode_by_hand(weights, text) for text in texts])
    assert np.abs(vectors - expected).max() < 1e-5


def test_other_weights_than_the_untouched_ones_are_refused(script, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    module = script("biencoder")
    assert module.find_weights(tmp_path) == tmp_path
    assert module.find_weights(tmp_path / "absent") is None
    with pytest.raises(ValueError, match="SHA-256"):
        module.BiEncoder(tmp_path)


class _OneHot:
    """Embeds a text as the letter it begins with."""

    def embed(self, texts):
        return np.stack([np.eye(26, dtype=np.float32)[ord(text[0]) - ord("a")] for text in texts])


def test_the_most_similar_outcome_is_found_and_kept(script, tmp_path):
    module, heldout = script("biencoder"), script("heldout")
    row = heldout.row_from_dict(
        {
            "context": "cats",
            "decisions": [
                {"id": "a", "kind": "single", "question": "?", "outcomes": ["ape", "cat", "cow"]},
                {"id": "b", "kind": "binary", "question": "?", "outcomes": ["yes", "no"]},
            ],
            "targets": {"a": {"cat": 1.0}, "b": {"no": 1.0}},
        }
    )
    assert module.similarity_tops(_OneHot(), [row], tmp_path) == [[1, 0]]
    assert module.similarity_tops(None, [row], tmp_path) == [[1, 0]]
