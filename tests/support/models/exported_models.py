"""Exported models as ``steelyard.training.hub`` leaves them, tiny and made without PyTorch."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from steelyard.scoring.exported import GRAPH, MANIFEST, TOKENIZER, HubManifest, Kind

_WORDS, _WIDTH = 512, 8
#: Outputs of each kind: a vector, a score, and the logits of three labels.
_OUTPUTS: dict[Kind, int] = {"similarity": _WIDTH, "relevance": 1, "entailment": 3}


def write_exported(folder: Path, kind: Kind, *, value: float | None = None) -> Path:
    """Write a model of random weights that reads words as bags; or one whose output is one value."""
    folder.mkdir(parents=True)
    contents = {GRAPH: _graph(kind, value), TOKENIZER: _tokenizer().to_str().encode()}
    manifest = HubManifest(
        source="tiny",
        kind=kind,
        inputs=["input_ids", "attention_mask"],
        max_tokens=64,
        pad_id=0,
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        entails=2,
        contradicts=0,
    )
    for name, content in {**contents, MANIFEST: msgspec.json.encode(manifest)}.items():
        (folder / name).write_bytes(content)
    return folder


def _tokenizer() -> Tokenizer:
    # Characters, so that every word is known.
    letters = {chr(code): code for code in range(1, 256)}
    tokenizer = Tokenizer(models.WordLevel({**letters, "[UNK]": 0, "[SEP]": 256}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP]", pair="$A [SEP] $B:1 [SEP]:1", special_tokens=[("[SEP]", 256)]
    )
    return tokenizer


def _graph(kind: Kind, value: float | None) -> bytes:
    """The mean of the tokens' vectors, as it is or through a matrix."""
    rng = np.random.default_rng(7)
    table = rng.normal(size=(_WORDS, _WIDTH)).astype(np.float32)
    matrix = rng.normal(size=(_WIDTH, _OUTPUTS[kind])).astype(np.float32)
    if value is not None:
        matrix[:] = value
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["tokens", "wide"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "second"], ["sums"], keepdims=0),
        helper.make_node("ReduceSum", ["wide", "second"], ["counts"], keepdims=0),
        helper.make_node("Div", ["sums", "counts"], ["mean"]),
        helper.make_node("MatMul", ["mean", "matrix"], ["output"]),
    ]
    weights = {
        "table": table,
        "matrix": matrix,
        "last": np.array([2], np.int64),
        "second": np.array([1], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", _OUTPUTS[kind]])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()
