"""Export a trained reader as the folder that the wire of entailment readers opens."""

from __future__ import annotations

import copy
import json
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import tokenizers
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from steelyard_base_recipe.reader.model import CLS, MAX_TOKENS, SEP, Reader, to_batch

GRAPH, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
_INPUTS = ("input_ids", "token_type_ids")
_RUNTIME = "com.microsoft"


class _Attention(torch.autograd.Function):
    """ONNX Runtime's own operator: a seventh less time for 400 tokens than of its parts."""

    @staticmethod
    def forward(_ctx: Any, query: Tensor, *_others: Any) -> Tensor:
        return torch.empty_like(query)  # traced for its shape alone

    @staticmethod
    def symbolic(graph: Any, query: Any, key: Any, value: Any, heads: int) -> Any:
        mixed = graph.op(f"{_RUNTIME}::MultiHeadAttention", query, key, value, num_heads_i=heads)
        return mixed.setType(query.type())


class _Pair(torch.nn.Module):
    """A reader that is given one pair at its own length, and so needs no mask."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = copy.deepcopy(reader)
        for layer in self.reader.layers:
            layer.attend = partial(_attend, layer.heads)

    def forward(self, ids: Tensor, segments: Tensor) -> Tensor:
        return self.reader(ids, segments, torch.ones_like(ids, dtype=torch.bool))


def _attend(heads: int, query: Tensor, key: Tensor, value: Tensor, _: Tensor) -> Tensor:
    return _Attention.apply(query, key, value, heads)


def export(reader: Reader, tokenizer: bytes, folder: Path, *, manifest: dict[str, Any]) -> None:
    """Write a reader's int8 graph, its tokenizer, its labels and its manifest to a folder.

    The weights are int8, a scale a channel. Activations are quantised while they are read, a scale a
    product: each pair is a pass of its own, so its bits depend on no other pair.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wide = folder / "model.float32.onnx"
    ids, segments, _ = to_batch([((1000, 1001), (1002, 1003, 1004))])
    torch.onnx.export(
        _Pair(reader).eval(),
        (ids, segments),
        str(wide),
        input_names=list(_INPUTS),
        output_names=["logits"],
        dynamic_axes={name: {0: "rows", 1: "tokens"} for name in _INPUTS} | {"logits": {0: "rows"}},
        opset_version=17,
        custom_opsets={_RUNTIME: 1},
        dynamo=False,
    )
    quantize_dynamic(
        wide,
        folder / GRAPH,
        per_channel=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    onnx.checker.check_model(str(folder / GRAPH))
    wide.unlink()
    (folder / TOKENIZER).write_text(_with_pairs(tokenizer))
    config = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "entailment", "1": "contradiction", "2": "neutral"},
        "max_position_embeddings": MAX_TOKENS,
        "model_type": "bert",
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    (folder / "steelyard.json").write_text(json.dumps(manifest, indent=2) + "\n")


def _with_pairs(tokenizer: bytes) -> str:
    """Return the tokenizer with the special tokens of a pair, and without padding or truncation."""
    read = tokenizers.Tokenizer.from_buffer(tokenizer)
    read.no_padding()
    read.no_truncation()
    read.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    return str(read.to_str())
