"""The packed scorer once more: NumPy, float64, one dense pass, nothing clever.

It shares the layout of tokens with the product and nothing else: no rows, no stages, no past, no
graph. Who sees whom is an explicit matrix over all tokens of the request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.assets import WEIGHTS
from steelyard.scoring.packing import ROLE_CONTEXT, Layout, TokenizedRequest, lay_out
from steelyard.scoring.reading import READING, read_request
from steelyard.scoring.tokenizer import Tokenizer

Array = np.ndarray
N_LAYERS, N_HEADS, SET_HEADS = 6, 12, 6
LAYER_NORM_EPS = 1e-12
KINDS = ("single", "binary", "ordinal")

_GRID = np.linspace(-6.0, 6.0, 120_001)
_ERF = np.array([math.erf(x) for x in _GRID])


def read_stored(folder: Path) -> dict[str, Array]:
    """Read a model folder's stored weights."""
    return {name: value for file in WEIGHTS for name, value in load_file(folder / file).items()}


def tokenize(
    request: RenderedRequest, tokenizer: Tokenizer, reading: int = READING
) -> TokenizedRequest:
    """Turn a rendered request into token ids."""
    return read_request(request, tokenizer, reading)


def visibility(layout: Layout) -> Array:
    """Return which token (first axis) sees which (second axis)."""
    block, channel = layout.blocks[:, 0], layout.blocks[:, 1]
    sees = block[:, None] == block[None, :]
    for column in (2, 3, 4):
        listens = layout.blocks[:, column]
        speaks = (channel > 0)[None, :] & (listens > 0)[:, None]
        sees |= speaks & (listens[:, None] == channel[None, :])
    return sees


def gelu(x: Array) -> Array:
    # Interpolation on this grid is within 2e-9 of erf.
    return 0.5 * x * (1.0 + np.interp(x / math.sqrt(2.0), _GRID, _ERF))


def softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class ReferenceDecision:
    """The reference's answer to one decision."""

    logits: Array
    marker_vectors: Array


class Reference:
    """Scores tokenised requests with stored weights, dequantised to float64."""

    def __init__(self, stored: Mapping[str, Array], apart: int = 0) -> None:
        self._apart = apart
        self._alone: dict[tuple[int, ...], Array] = {}
        self._weights: dict[str, Array] = {}
        for name, value in stored.items():
            stem, _, part = name.rpartition(".")
            if part == "scale":
                continue
            scale = stored.get(f"{stem}.scale")
            weight = value.astype(np.float64)
            if part == "weight" and scale is not None:
                # One scale an output: a column of a matrix, a row of the word embeddings.
                by_row = stem == "word_embeddings"
                weight = weight * (scale[:, None] if by_row else scale).astype(np.float64)
            self._weights[name] = weight

    def score(self, request: TokenizedRequest) -> list[ReferenceDecision]:
        """Score every decision of a request."""
        layout = lay_out(request)
        hidden = self.encode(layout)
        context = self._pool(layout, hidden)
        decisions = []
        for index, decision in enumerate(request.decisions):
            markers = hidden[layout.markers[index]]
            n_outcomes = len(decision.outcomes)
            similarity = np.zeros(n_outcomes)
            if decision.kind == "binary":  # the question stands for "yes"
                similarity[decision.yes] = self.outcome_vectors([decision.question])[0] @ context
            elif decision.kind == "single" and request.sentences:
                compared = self.outcome_vectors(request.sentences)
                whole = compared.sum(axis=0)
                compared = np.vstack([compared, whole / np.linalg.norm(whole)])
                similarity = (self.outcome_vectors(decision.outcomes) @ compared.T).max(axis=1)
            else:
                similarity = self.outcome_vectors(decision.outcomes) @ context
            gate = self._weights.get("similarity_gate.weight")
            if gate is not None:
                kind = KINDS.index(decision.kind)
                similarity = similarity * (1.0 + 2.0 * np.tanh(markers @ gate[:, kind]))
            levels = np.zeros((n_outcomes, 3))
            if decision.kind == "ordinal":
                level = np.linspace(0.0, 1.0, n_outcomes)
                levels = np.stack([np.ones(n_outcomes), level, level**2], axis=1)
            state = (
                markers
                + levels @ self._weights["level_projection.weight"]
                + similarity[:, None] @ self._weights["similarity_projection.weight"]
            )
            everyone = np.ones((n_outcomes, n_outcomes), bool)
            state = self._layer(state, "set_layer", SET_HEADS, everyone)
            strength = self._weights["similarity_weight"][KINDS.index(decision.kind)]
            logits = (state @ self._weights["logit.weight"])[:, 0] + strength * similarity
            decisions.append(ReferenceDecision(logits, markers))
        return decisions

    def outcome_vectors(self, texts: Sequence[Sequence[int]]) -> Array:
        """Return the unit vector of each text read alone, as a context is."""
        return np.stack([self._outcome_vector(tuple(text)) for text in texts])

    def _outcome_vector(self, text: tuple[int, ...]) -> Array:
        if text not in self._alone:
            layout = lay_out(TokenizedRequest(text, ()))
            self._alone[text] = self._pool(layout, self.encode(layout))
        return self._alone[text]

    def encode(self, layout: Layout) -> Array:
        """Return the last hidden states of a layout's tokens."""
        hidden = self._norm(
            self._weights["word_embeddings.weight"][layout.ids]
            + self._weights["position_embeddings.weight"][layout.positions]
            + self._weights["role_embeddings.weight"][layout.roles],
            "embedding_norm",
        )
        sees = visibility(layout)
        is_context = layout.roles == ROLE_CONTEXT
        below = sees & (is_context[:, None] | ~is_context[None, :])
        for index in range(N_LAYERS):
            seen = below if index < self._apart else sees
            hidden = self._layer(hidden, f"layers.{index}", N_HEADS, seen)
        return hidden

    def _pool(self, layout: Layout, hidden: Array) -> Array:
        total = hidden[layout.blocks[:, 1] == layout.context_channel].sum(axis=0)
        return total / np.linalg.norm(total)

    def _layer(self, hidden: Array, name: str, n_heads: int, sees: Array) -> Array:
        # The queries' scaling is folded into the stored weights.
        qkv = self._linear(hidden, f"{name}.qkv")
        query, key, value = np.split(qkv, 3, axis=-1)
        head = hidden.shape[-1] // n_heads
        attended = np.empty_like(hidden)
        for start in range(0, hidden.shape[-1], head):
            part = slice(start, start + head)
            scores = np.where(sees, query[:, part] @ key[:, part].T, -np.inf)
            attended[:, part] = softmax(scores) @ value[:, part]
        out = self._linear(attended, f"{name}.attention_output")
        hidden = self._norm(hidden + out, f"{name}.attention_norm")
        fed = gelu(self._linear(hidden, f"{name}.feed_forward_in"))
        return self._norm(
            hidden + self._linear(fed, f"{name}.feed_forward_out"), f"{name}.output_norm"
        )

    def _linear(self, x: Array, name: str) -> Array:
        return x @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + LAYER_NORM_EPS)
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
