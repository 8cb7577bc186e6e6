"""Exporting a model of the Hugging Face hub, once, for ``steelyard.scoring.exported``.

A sentence-transformer, a CrossEncoder with one score, or a classifier of entailment becomes one ONNX
graph of float32 and a tokenizer; serving then needs neither PyTorch nor the model's own code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnxruntime
import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from steelyard.scoring.exported import GRAPH, MANIFEST, TOKENIZER, HubManifest

#: Weights that one graph holds: a file of its format ends at 2 GiB.
MAX_PARAMETERS = 450_000_000
#: Tokens of a text, where a model says none or more than a CPU can wait for.
MAX_TOKENS = 512
#: What an export is checked with, and how far its output may be from the model's.
_TEXTS = ["Invoice 118 was paid twice, and nobody has answered since.", "A parcel."]
_TOLERANCE = 1e-3
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors", "1_Pooling/*"]


class HubExportError(ValueError):
    """A model that cannot be exported, and why."""


class _Pooled(nn.Module):
    """A sentence-transformer: the mean of tokens' vectors, or the first, of length 1."""

    def __init__(self, encoder: nn.Module, inputs: list[str], pooling: str) -> None:
        super().__init__()
        self.encoder, self.inputs, self.pooling = encoder, inputs, pooling

    def forward(self, *given: Tensor) -> Tensor:
        """Return the vectors of some texts."""
        named = dict(zip(self.inputs, given, strict=True))
        hidden = self.encoder(**named).last_hidden_state
        if self.pooling == "cls":
            pooled = hidden[:, 0]
        else:
            mask = named["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(pooled, dim=-1)


class _Classified(nn.Module):
    def __init__(self, model: nn.Module, inputs: list[str]) -> None:
        super().__init__()
        self.model, self.inputs = model, inputs

    def forward(self, *given: Tensor) -> Tensor:
        """Return the logits of some pairs of texts."""
        logits: Tensor = self.model(**dict(zip(self.inputs, given, strict=True))).logits
        return logits


def export(source: str, home: Path) -> Path:
    """Export a model into a folder below ``home`` named by its content hash; return the folder.

    ``source`` is a folder, or a name on the hub, which is fetched. Raise ``HubExportError`` where
    the model is of a kind that cannot answer for outcomes it was not made for.
    """
    folder = _find(source)
    manifest, module = _read(source, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if not tokenizer.is_fast:
        raise HubExportError(
            f"{source} has no tokenizer.json; choose a model with a fast tokenizer."
        )
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".export-", dir=home))
    try:
        graph = _graph(module, manifest.inputs)
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        words = tokenizer.backend_tokenizer.to_str().encode()
        _compare(source, graph, module, tokenizer, manifest.inputs)
        manifest = msgspec.structs.replace(
            manifest,
            pad_id=int(tokenizer.pad_token_id or 0),
            sha256={
                GRAPH: hashlib.sha256(graph).hexdigest(),
                TOKENIZER: hashlib.sha256(words).hexdigest(),
            },
        )
        contents = {GRAPH: graph, TOKENIZER: words, MANIFEST: msgspec.json.encode(manifest)}
        for name, content in contents.items():
            with (partial / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        name = hashlib.sha256(contents[MANIFEST]).hexdigest()[:32]
        if not (home / name).exists():
            partial.rename(home / name)
        return home / name
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _find(source: str) -> Path:
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    try:
        return Path(snapshot_download(source, allow_patterns=_FILES))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise HubExportError(
            f"{source!r} is no folder, and could not be fetched from the Hugging Face hub: "
            f"{str(error).splitlines()[0]}"
        ) from error


def _read(source: str, folder: Path) -> tuple[HubManifest, nn.Module]:
    """Return how a model is asked, and the model as a module of tensors alone."""
    encoder = _transformer_of(folder)
    config = AutoConfig.from_pretrained(encoder)
    names = list(AutoTokenizer.from_pretrained(encoder).model_input_names)
    inputs = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in names]
    architecture = (config.architectures or ["nothing"])[0]
    values: dict[str, Any] = {
        "source": source,
        "inputs": inputs,
        "pad_id": 0,
        "sha256": {},
        "max_tokens": _max_tokens(encoder, config),
    }
    if (folder / "modules.json").exists() and not architecture.endswith("SequenceClassification"):
        model = AutoModel.from_pretrained(encoder, attn_implementation="eager").float().eval()
        module: nn.Module = _Pooled(model, inputs, _pooling_of(source, folder))
        manifest = HubManifest(kind="similarity", **values)
    elif architecture.endswith("ForSequenceClassification"):
        model = (
            AutoModelForSequenceClassification.from_pretrained(encoder, attn_implementation="eager")
            .float()
            .eval()
        )
        module = _Classified(model, inputs)
        labels = {str(name).lower(): int(n) for n, name in (config.id2label or {}).items()}
        entails = next((n for name, n in labels.items() if name.startswith("entail")), None)
        against = next((n for name, n in labels.items() if name.startswith("contradict")), None)
        if config.num_labels == 1:
            manifest = HubManifest(kind="relevance", **values)
        elif entails is not None:
            manifest = HubManifest(
                kind="entailment", entails=entails, contradicts=against, **values
            )
        else:
            raise HubExportError(
                f"{source} answers with its own labels alone ({', '.join(labels)[:120]}); choose one "
                "with one score, or with a label 'entailment'."
            )
    else:
        raise HubExportError(
            f"{source} is a {architecture}, which is not exported here; choose a sentence-transformer, "
            "a CrossEncoder with one score, or a classifier with a label 'entailment'."
        )
    n_parameters = sum(parameter.numel() for parameter in module.parameters())
    if n_parameters > MAX_PARAMETERS:
        raise HubExportError(
            f"{source} has {n_parameters / 1e6:,.0f} million parameters, and at most "
            f"{MAX_PARAMETERS / 1e6:,.0f} are exported; serve it on a server of its own and connect that."
        )
    return manifest, module


def _transformer_of(folder: Path) -> Path:
    """Return the folder of a sentence-transformer's first module; the folder itself of any other."""
    path = folder / "modules.json"
    if not path.exists():
        return folder
    modules = json.loads(path.read_text())
    return folder / modules[0]["path"]


def _pooling_of(source: str, folder: Path) -> str:
    modules = json.loads((folder / "modules.json").read_text())
    kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or set(kinds[2:]) - {"Normalize"}:
        raise HubExportError(
            f"{source} is made of {', '.join(kinds)}; a transformer and pooling are exported, without "
            "more layers."
        )
    config = json.loads((folder / modules[1]["path"] / "config.json").read_text())
    if "pooling_mode" in config:
        chosen = {str(config["pooling_mode"])}
    else:
        chosen = {
            name.removeprefix("pooling_mode_").removesuffix("_token").removesuffix("_tokens")
            for name, is_on in config.items()
            if name.startswith("pooling_mode_") and is_on
        }
    if chosen not in ({"mean"}, {"cls"}):
        raise HubExportError(
            f"{source} pools by {', '.join(sorted(chosen)) or 'nothing'}; the mean and the first token "
            "are exported."
        )
    return chosen.pop()


def _max_tokens(folder: Path, config: Any) -> int:
    path = folder / "sentence_bert_config.json"
    declared = json.loads(path.read_text()).get("max_seq_length") if path.exists() else None
    positions = getattr(config, "max_position_embeddings", MAX_TOKENS)
    # Positions of RoBERTa and its like begin after the padding's.
    positions -= (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0
    return int(min(declared or MAX_TOKENS, positions, MAX_TOKENS))


def _compare(
    source: str, graph: bytes, module: nn.Module, tokenizer: Any, inputs: list[str]
) -> None:
    """Raise ``HubExportError`` unless the graph answers as the model does, with padding and without."""
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    for texts in (_TEXTS, _TEXTS[:1]):
        tokens = tokenizer(texts, padding=True, return_tensors="pt")
        given = [tokens[name] for name in inputs]
        with torch.no_grad():
            expected = module(*given).numpy()
        [actual] = session.run(
            ["output"], {name: tensor.numpy() for name, tensor in zip(inputs, given, strict=True)}
        )
        if not np.allclose(actual, expected, atol=_TOLERANCE, rtol=_TOLERANCE):
            raise HubExportError(
                f"{source} answers otherwise once it is exported; serve it on a server of its own and "
                "connect that."
            )


def _graph(module: nn.Module, inputs: list[str]) -> bytes:
    # Two of everything, so that no axis is taken for one that is always 1.
    sample = tuple(torch.ones((2, 4), dtype=torch.int64) for _ in inputs)
    graph = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what tracing may get wrong is checked afterwards
        torch.onnx.export(
            module.eval(),
            sample,
            graph,
            input_names=inputs,
            output_names=["output"],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in inputs}
            | {"output": {0: "batch"}},
            opset_version=18,
            dynamo=False,
        )
    return graph.getvalue()
