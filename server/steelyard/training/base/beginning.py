"""What a training run begins with: a scorer with an encoder's weights, and what holds it to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.base.model import PackedScorer, load_encoder
from steelyard.training.base.start import BGE, Start, find_encoder, read_encoder


@dataclass(frozen=True, slots=True)
class Beginning:
    """A scorer to train, the sentence encoder whose vectors it keeps near to, and their tokenizer."""

    model: PackedScorer
    anchor: PackedScorer
    tokenizer: Tokenizer


def begin(start: Start, apart: int = 0, encoder: Path | None = None) -> Beginning:
    """Load a start; one that is no sentence encoder is held to the vectors of bge-small-en-v1.5.

    ``encoder`` is the folder of the start's weights; by default, that of the installed package.
    """
    folder = find_encoder(encoder, start)
    tokenizer = Tokenizer((folder / "tokenizer.json").read_bytes(), name="start", revision="start")
    model = _loaded(start, folder, apart)
    if start.is_sentence_encoder:
        return Beginning(model, _loaded(start, folder), tokenizer)
    is_beside = encoder is not None and start.folder == BGE.folder
    return Beginning(
        model, _loaded(BGE, find_encoder(encoder if is_beside else None, BGE)), tokenizer
    )


def _loaded(start: Start, folder: Path, apart: int = 0) -> PackedScorer:
    model = PackedScorer(apart=apart, n_layers=len(start.layers))
    load_encoder(model, read_encoder(folder, start), start.layers, has_pairs=start.has_pairs)
    return model
