"""A base model of the real size with random weights: fast to make, and it needs no training.

Its answers mean nothing. Properties of any weights (invariances, agreement with the reference, checks
of files) are tested on it; the shipped model is tested beside it where there is one.
"""

from __future__ import annotations

import hashlib
import string
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save
from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.assets import CARD, MANIFEST, TOKENIZER, WEIGHTS
from steelyard.scoring.engine import FLOAT32, INT8
from steelyard.scoring.packing import CLS, SEP
from steelyard.scoring.reading import READING
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.shape import Shape
from steelyard.training.weights import pack_weights
from steelyard_base_recipe import quantize
from steelyard_base_recipe.graph_files import graph_files
from steelyard_base_recipe.quantize import activation_scales

NAME = "random"
#: Words that every tokenizer in these tests knows as one token.
WORDS = (
    "account",
    "after",
    "again",
    "bank",
    "before",
    "book",
    "card",
    "change",
    "city",
    "cold",
    "door",
    "early",
    "fire",
    "good",
    "green",
    "house",
    "late",
    "light",
    "money",
    "never",
    "open",
    "order",
    "paper",
    "pay",
    "phone",
    "quick",
    "river",
    "school",
    "slow",
    "small",
    "station",
    "table",
    "train",
    "water",
    "week",
    "white",
    "window",
    "winter",
    "work",
    "year",
)
_MARKS = string.punctuation
_LETTERS = string.ascii_lowercase + string.digits


def make_words(n_words: int, seed: int = 0) -> str:
    """Return a text of a number of words, each one token."""
    rng = np.random.default_rng([seed, n_words])
    return " ".join(WORDS[i] for i in rng.integers(len(WORDS), size=n_words))


def make_tokenizer_json() -> bytes:
    """Make a WordPiece tokenizer with the special ids and the vocabulary size of the real one."""
    vocabulary = {"[PAD]": 0, "[UNK]": 100, "[CLS]": CLS, "[SEP]": SEP, "[MASK]": 103}
    known = [*_MARKS, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *WORDS]
    vocabulary |= {token: id_ for id_, token in enumerate(dict.fromkeys(known), start=1_000)}
    unused = set(range(Shape().vocabulary)) - set(vocabulary.values())
    vocabulary |= {f"[unused{id_}]": id_ for id_ in sorted(unused)}
    backend = Backend(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return backend.to_str().encode()


def make_state(seed: int = 0) -> dict[str, np.ndarray]:
    """Make a checkpoint's tensors, scaled so that hidden states neither vanish nor saturate."""
    shape, rng = Shape(), np.random.default_rng(seed)

    def normal(scale: float, *dims: int) -> np.ndarray:
        return np.multiply(rng.standard_normal(dims, np.float32), scale, dtype=np.float32)

    width = shape.width
    state = {
        "word_embeddings.weight": normal(0.05, shape.vocabulary, width),
        "position_embeddings.weight": normal(0.02, shape.n_positions, width),
        "role_embeddings.weight": normal(0.03, shape.n_roles, width),
        "level_projection.weight": normal(0.5, width, 3),
        "similarity_projection.weight": normal(0.5, width, 1),
        "logit.weight": normal(0.2, 1, width),
        "similarity_gate.weight": normal(0.02, 3, width),
        "similarity_weight": np.array([3.0, 0.0, 2.0], np.float32),
    }

    def add_norm(name: str) -> None:
        state[f"{name}.weight"] = 1 + normal(0.1, width)
        state[f"{name}.bias"] = normal(0.1, width)

    add_norm("embedding_norm")
    blocks = [(f"layers.{i}", shape.feed_forward) for i in range(shape.n_layers)]
    for block, inner in [*blocks, ("set_layer", shape.set_feed_forward)]:
        sizes = {
            "query": (width, width, 0.08),
            "key": (width, width, 0.08),
            "value": (width, width, 0.05),
            "attention_output": (width, width, 0.05),
            "feed_forward_in": (inner, width, 0.05),
            "feed_forward_out": (width, inner, 0.03),
        }
        for part, (n_out, n_in, scale) in sizes.items():
            state[f"{block}.{part}.weight"] = normal(scale, n_out, n_in)
            state[f"{block}.{part}.bias"] = normal(0.05, n_out)
        add_norm(f"{block}.attention_norm")
        add_norm(f"{block}.output_norm")
    return state


def sample_requests() -> list[RenderedRequest]:
    """Requests whose activations give the int8 graph its scales."""
    return [
        RenderedRequest(
            make_words(5 + 3 * seed, seed),
            (
                RenderedDecision(
                    ("single", "binary", "ordinal")[seed % 3],
                    make_words(3 + seed % 9, seed + 100),
                    tuple(make_words(1 + i, seed + 200 + i) for i in range(2 + seed % 5)),
                ),
            ),
        )
        for seed in range(24)
    ]


def write_random_model(
    folder: Path, state: dict[str, np.ndarray] | None = None, *, apart: int = 0
) -> None:
    """Write a model folder as an export does, with some layers that read questions apart."""
    folder.mkdir(parents=True, exist_ok=True)
    words, rest = pack_weights(make_state() if state is None else state, Shape())
    shape = Shape.of(rest, apart)
    content = make_tokenizer_json()
    tokenizer = Tokenizer(content, name="words", revision="1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantize, "SAMPLE", 20_000)
        scales = activation_scales({**words, **rest}, shape, tokenizer, sample_requests())
    files = {
        TOKENIZER: content,
        WEIGHTS[0]: save(words),
        WEIGHTS[1]: save(rest),
        **graph_files(shape, scales),
    }
    for file, value in files.items():
        (folder / file).write_bytes(value)
    manifest: dict[str, Any] = {
        "name": NAME,
        "engine": "onnxruntime-float32",
        "reading": READING,
        **({"apart": apart} if apart else {}),
        "files": {file: hashlib.sha256(value).hexdigest() for file, value in files.items()},
        "tokenizer": {"name": tokenizer.name, "revision": tokenizer.revision},
        "temperatures": {
            FLOAT32: {"temperatures": {"single": {"3-5": 2.0}}},
            INT8: {"temperatures": {"single": {"3-5": 3.0}}},
        },
    }
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    (folder / CARD).write_text("# A model with random weights\n", encoding="utf-8")
