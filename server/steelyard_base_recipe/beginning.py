"""The start of a training run: a scorer with an encoder's weights, and the terms that hold it to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from steelyard.scoring.packing import N_ROLES, ROLE_CONTEXT
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.model import NEW_PARTS, PackedScorer
from steelyard_base_recipe.start import BGE, Start, find_encoder, read_encoder


@dataclass(frozen=True, slots=True)
class ScorerStart:
    """A scorer to train, the sentence encoder whose vectors it keeps near to, and their tokenizer."""

    model: PackedScorer
    anchor: PackedScorer
    tokenizer: Tokenizer


def begin(start: Start, apart: int = 0, encoder: Path | None = None) -> ScorerStart:
    """Load a start; one that is no sentence encoder is held to the vectors of bge-small-en-v1.5.

    ``encoder`` is the folder of the start's weights; by default, that of the installed package.
    """
    folder = find_encoder(encoder, start)
    tokenizer = Tokenizer((folder / "tokenizer.json").read_bytes(), name="start", revision="start")
    model = _loaded(start, folder, apart)
    if start.is_sentence_encoder:
        return ScorerStart(model, _loaded(start, folder), tokenizer)
    is_beside = encoder is not None and start.folder == BGE.folder
    return ScorerStart(
        model, _loaded(BGE, find_encoder(encoder if is_beside else None, BGE)), tokenizer
    )


def _loaded(start: Start, folder: Path, apart: int = 0) -> PackedScorer:
    model = PackedScorer(apart=apart, n_layers=len(start.layers))
    load_encoder(model, read_encoder(folder, start), start.layers, has_pairs=start.has_pairs)
    return model


def load_encoder(
    model: PackedScorer,
    source: Mapping[str, NDArray[np.float32]],
    layers: Sequence[int],
    *,
    has_pairs: bool = False,
) -> None:
    """Start from the weights of a BERT encoder, by the names that PyTorch gave them.

    Its ``layers`` become those of the model, in their order. Where it ``has_pairs`` a context starts
    as a second segment, and as a first one otherwise.
    """
    names = {
        "attention.self.query": "query",
        "attention.self.key": "key",
        "attention.self.value": "value",
        "attention.output.dense": "attention_output",
        "attention.output.LayerNorm": "attention_norm",
        "intermediate.dense": "feed_forward_in",
        "output.dense": "feed_forward_out",
        "output.LayerNorm": "output_norm",
    }
    segments = [int(has_pairs and role == ROLE_CONTEXT) for role in range(N_ROLES)]
    state = {
        "word_embeddings.weight": source["embeddings.word_embeddings.weight"],
        "position_embeddings.weight": source["embeddings.position_embeddings.weight"],
        "role_embeddings.weight": source["embeddings.token_type_embeddings.weight"][segments],
        "embedding_norm.weight": source["embeddings.LayerNorm.weight"],
        "embedding_norm.bias": source["embeddings.LayerNorm.bias"],
    }
    for place, layer in enumerate(layers):
        for old, new in names.items():
            for part in ("weight", "bias"):
                state[f"layers.{place}.{new}.{part}"] = source[
                    f"encoder.layer.{layer}.{old}.{part}"
                ]
    tensors = {name: torch.from_numpy(np.array(v)) for name, v in state.items()}
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    if unexpected or any(not name.startswith(NEW_PARTS) for name in missing):
        msg = f"The encoder has {len(layers)} layers to use, and the model {len(model.layers)}."
        raise ValueError(msg)
