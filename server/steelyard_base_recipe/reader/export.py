"""Export a trained reader as the folder that the wire of entailment readers opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import tokenizers
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers.processors import TemplateProcessing

from steelyard_base_recipe.reader.model import CLS, MAX_TOKENS, SEP, Reader, to_batch

GRAPH, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
_INPUTS = ("input_ids", "token_type_ids", "attention_mask")


class _Inputs(torch.nn.Module):
    """The reader with the inputs of published encoders, in their order."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader

    def forward(
        self, ids: torch.Tensor, segments: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        return self.reader(ids, segments, seen.bool())


def export(reader: Reader, tokenizer: bytes, folder: Path, *, manifest: dict[str, Any]) -> None:
    """Write a reader's int8 graph, its tokenizer, its labels and its manifest to a folder.

    The weights are int8, a scale a channel. Activations are quantised while they are read, a scale a
    product: each pair is a pass of its own, so its bits depend on no other pair.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wide = folder / "model.float32.onnx"
    ids, segments, seen = to_batch([((1000, 1001), (1002, 1003, 1004))])
    torch.onnx.export(
        _Inputs(reader.eval()),
        (ids, segments, seen.long()),
        str(wide),
        input_names=list(_INPUTS),
        output_names=["logits"],
        dynamic_axes={name: {0: "rows", 1: "tokens"} for name in _INPUTS} | {"logits": {0: "rows"}},
        opset_version=17,
        dynamo=False,
    )
    quantize_dynamic(
        wide,
        folder / GRAPH,
        per_channel=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
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
