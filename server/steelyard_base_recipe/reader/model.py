"""The reader as PyTorch trains it: BERT's layers over a line and a text, and three logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file
from torch import Tensor, nn
from torch.nn import functional

from steelyard_base_recipe.dequantize import read_quantized

#: Logits: the text makes the line true, makes it false, or does not say.
TRUE, FALSE, UNSTATED = 0, 1, 2
N_LABELS = 3
#: Tokens of a line and a text together, with [CLS] and two [SEP].
MAX_TOKENS = 512
CLS, SEP = 101, 102
#: Where a text's positions begin while its first layers do not see the line, however long that is.
TEXT_AT = 16
#: Values of a head of attention in MiniLM.
_HEAD = 32


class Layer(nn.Module):
    """One layer of BERT: attention and a feed-forward part, each with its residual and norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor, n_first: int | None = None) -> Tensor:
        """Return the layer's output for the first ``n_first`` tokens of ``x`` (rows, tokens, width).

        All tokens without ``n_first``. ``mask`` is added to the scores of attention.
        """
        reading = x[:, :n_first]
        mixed = self.attend(self.query(reading), self.key(x), self.value(x), mask)
        x = self.attention_norm(reading + self.out(mixed))
        return self.norm(x + self.down(functional.gelu(self.up(x))))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Return the mixed values (rows, tokens, width) of projected tokens, each (rows, tokens, width)."""
        rows, _, width = query.shape
        query, key, value = (
            part.view(rows, -1, self.heads, width // self.heads).transpose(1, 2).float()
            for part in (query, key, value)
        )
        # In float32: the backward pass of attention in bfloat16 takes six times as long on a CPU.
        with torch.autocast("cpu", enabled=False):
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).reshape(rows, -1, width)


class Reader(nn.Module):
    """An encoder of the shape of MiniLM-L12-H384 with three logits on its first token.

    In the first ``apart`` layers a line and a text do not see each other: what those layers make of a
    text serves all its lines (Cao et al., 2020).
    """

    def __init__(
        self,
        layers: int = 12,
        width: int = 384,
        heads: int = 12,
        words: int = 30_522,
        *,
        apart: int = 0,
    ) -> None:
        super().__init__()
        self.apart = apart
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(MAX_TOKENS, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.dense = nn.Linear(width, width)
        self.head = nn.Linear(width, N_LABELS)

    def forward(self, ids: Tensor, segments: Tensor, seen: Tensor) -> Tensor:
        """Return logits (rows, 3) of token ids, segments and a mask, each (rows, tokens)."""
        return self.read(ids, segments, seen)[0]

    def read(self, ids: Tensor, segments: Tensor, seen: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits (rows, 3), and what each layer made of the tokens (rows, tokens, width)."""
        at = torch.arange(ids.shape[1], device=ids.device)
        if self.apart:
            line = ((segments == 0) & seen).sum(1, keepdim=True)
            at = (at + segments * (TEXT_AT - line)).clamp(max=MAX_TOKENS - 1)
        x = self.norm(self.words(ids) + self.positions(at) + self.segments(segments))
        unseen = torch.finfo(torch.bfloat16).min
        mask = torch.zeros(seen.shape, dtype=x.dtype, device=x.device)
        joint = mask.masked_fill(~seen, unseen)[:, None, None, :]
        other = segments[:, None, :, None] != segments[:, None, None, :]
        apart = joint.masked_fill(other, unseen) if self.apart else joint
        states = []
        for number, layer in enumerate(self.layers[:-1]):
            x = layer(x, apart if number < self.apart else joint)
            states.append(x)
        x = self.layers[-1](x, joint, n_first=1)  # of the last layer, the head reads [CLS] alone
        return self.head(torch.tanh(self.dense(x[:, 0]))), [*states, x]


_PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}


def begin(stored: Mapping[str, NDArray[np.float32]]) -> Reader:
    """Return a reader with an encoder's weights, under BERT's names; its head is new where they lack one."""
    n_layers = 1 + max(int(name.split(".")[2]) for name in stored if ".layer." in name)
    names = {
        "words.weight": "embeddings.word_embeddings.weight",
        "positions.weight": "embeddings.position_embeddings.weight",
        "segments.weight": "embeddings.token_type_embeddings.weight",
    }
    for end in ("weight", "bias"):
        names[f"norm.{end}"] = f"embeddings.LayerNorm.{end}"
        names[f"dense.{end}"], names[f"head.{end}"] = f"pooler.dense.{end}", f"head.{end}"
        for layer in range(n_layers):
            for ours, theirs in _PARTS.items():
                names[f"layers.{layer}.{ours}.{end}"] = f"encoder.layer.{layer}.{theirs}.{end}"
    reader = Reader(n_layers)
    weights = {
        ours: torch.from_numpy(stored[theirs].astype(np.float32))
        for ours, theirs in names.items()
        if theirs in stored
    }
    reader.load_state_dict(reader.state_dict() | weights)
    return reader


def read_start(path: Path) -> Reader:
    """Load a reader: an exported graph, or weights named as BERT's below ``b.``, ``d`` (dense) and ``h`` (head)."""
    if path.suffix == ".onnx":
        exported = {
            name.removeprefix("reader."): torch.from_numpy(np.array(value))
            for name, value in read_quantized(path).items()
        }
        n_layers = len({name.split(".")[1] for name in exported if name.startswith("layers.")})
        n_words, width = exported["words.weight"].shape
        reader = Reader(n_layers, width, max(1, width // _HEAD), n_words)
        reader.load_state_dict(exported)
        return reader
    parts = {"b": "", "d": "pooler.dense.", "h": "head."}
    stored = load_file(path)
    return begin(
        {
            parts[name.partition(".")[0]] + name.partition(".")[2]: value
            for name, value in stored.items()
        }
    )


def to_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, segments and mask of (line, text) token ids, padded to the longest of them.

    The line is never cut; a text too long for both loses its end.
    """
    rows = []
    for line, text in pairs:
        room = MAX_TOKENS - 3 - len(line)
        rows.append(([CLS, *line, SEP], [*text[:room], SEP]))
    length = max(len(line) + len(text) for line, text in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    segments = torch.zeros(len(rows), length, dtype=torch.long)
    seen = torch.zeros(len(rows), length, dtype=torch.bool)
    for row, (line, text) in enumerate(rows):
        both = len(line) + len(text)
        ids[row, :both] = torch.tensor([*line, *text])
        segments[row, len(line) : both] = 1
        seen[row, :both] = True
    return ids, segments, seen
