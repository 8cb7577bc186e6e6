"""The packed scorer in PyTorch, for training only; serving runs the exported graph.

A BERT encoder (Devlin et al. 2019) initialised from all-MiniLM-L6-v2 (Wang et al. 2020; Reimers
and Gurevych 2019) under a block mask, a set-attention layer over each decision's outcomes (Lee et
al. 2019), and a similarity channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from steelyard.scoring.packing import N_ROLES, ROLE_CONTEXT
from steelyard.training.shape import GATE_SPAN

WIDTH, N_LAYERS, N_HEADS, FEED_FORWARD = 384, 6, 12, 1536
SET_HEADS, SET_FEED_FORWARD = 6, 768
VOCABULARY, N_POSITIONS = 30_522, 512
LAYER_NORM_EPS = 1e-12
#: Tokens of a row up to which products one by one are faster than fused attention.
LONGEST_UNFUSED = 256
N_LEVEL_FEATURES = 3
#: Parts that start from nothing; the others start from the encoder.
NEW_PARTS = ("level_projection", "similarity_", "set_layer", "logit")
#: Similarity's weight in the logit when training starts, by ``passes.KINDS``.
INITIAL_SIMILARITY = (12.0, 4.0, 4.0)


@dataclass(slots=True)
class PackedBatch:
    """Rows of packed requests as tensors, of int64 where nothing else is said."""

    # Of shape (n_rows, length).
    ids: Tensor
    positions: Tensor
    roles: Tensor
    # Bool, (n_rows, 1, length, length): whether a token (third axis) attends to another (fourth).
    mask: Tensor
    # (n_rows * length,): which pooled vector a token adds to; ``n_pools`` for none.
    pools: Tensor
    n_pools: int
    # (n_decisions, n_outcomes): flat token index of each outcome's marker; 0 where there is none.
    markers: Tensor
    # Bool, (n_decisions, n_outcomes).
    outcome_mask: Tensor
    # Float32, (n_decisions, n_outcomes, 3).
    levels: Tensor
    # (n_decisions,): index into ``steelyard.scoring.passes.KINDS``.
    kinds: Tensor
    context_pools: Tensor
    # (n_decisions, n_compared): pools that outcomes are compared with, and with the mean of them, the
    # most similar counting: the context's, or its sentences'; ``n_pools`` where there are no more.
    compared_pools: Tensor
    # (n_decisions, n_outcomes): pool of each outcome's text alone; ``n_pools`` for none.
    outcome_pools: Tensor
    # Float32, (n_decisions, n_outcomes) and (n_decisions,).
    targets: Tensor
    weights: Tensor
    # Float32, (n_decisions,): how much of the target is a teacher's answer.
    teacher_shares: Tensor
    # Tokens that are not padding.
    n_tokens: int
    # The token ids behind each pool, without special tokens.
    texts: tuple[tuple[int, ...], ...]

    def to(self, device: torch.device) -> PackedBatch:
        """Return the batch on another device."""
        values = {
            name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
            for name in self.__slots__
            for value in [getattr(self, name)]
        }
        return PackedBatch(**values)


class EncoderLayer(nn.Module):
    """One post-norm transformer layer with separate query, key and value."""

    def __init__(self, width: int, n_heads: int, feed_forward: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.attention_output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.feed_forward_in = nn.Linear(width, feed_forward)
        self.feed_forward_out = nn.Linear(feed_forward, width)
        self.output_norm = nn.LayerNorm(width, eps=LAYER_NORM_EPS)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """Return the next hidden states, of the shape (n_rows, length, width) given."""
        rows, length, width = hidden.shape

        def heads(x: Tensor) -> Tensor:
            return x.view(rows, length, self.n_heads, -1).transpose(1, 2)

        query, key, value = (heads(f(hidden)) for f in (self.query, self.key, self.value))
        attended = attend(query, key, value, bias)
        attended = self.attention_output(attended.transpose(1, 2).reshape(rows, length, width))
        hidden = self.attention_norm(hidden + attended)
        fed = self.feed_forward_out(functional.gelu(self.feed_forward_in(hidden)))
        return self.output_norm(hidden + fed)


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Return each token's mix of the others, under a bias that is -inf where it does not attend.

    On a processor the fused attention of PyTorch 2.13 takes three times as long as its products one
    by one where gradients are wanted and rows are short, since its way back uses no matrix units.
    """
    is_short = bias.shape[-1] <= LONGEST_UNFUSED
    if query.device.type != "cpu" or not query.requires_grad or not is_short:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    scores = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(-1, -2)) + bias
    return torch.matmul(torch.softmax(scores, -1), value)


def bias_of(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 0 where a token attends to another, and -inf where it does not."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


class PackedScorer(nn.Module):
    """Logits for every outcome of every decision of a batch of packed requests.

    In the lowest ``apart`` layers a question and its outcomes do not see the context: their states
    there are the same in every request, and serving keeps them (Cao et al. 2020; MacAvaney et al.
    2020).
    """

    def __init__(self, apart: int = 0, n_layers: int = N_LAYERS) -> None:
        super().__init__()
        if not 0 <= apart < n_layers:
            msg = f"apart is {apart}; expected 0 to {n_layers - 1}, a number of the lowest layers."
            raise ValueError(msg)
        self.apart = apart
        self.word_embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embeddings = nn.Embedding(N_POSITIONS, WIDTH)
        self.role_embeddings = nn.Embedding(N_ROLES, WIDTH)
        self.embedding_norm = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPS)
        self.layers = nn.ModuleList(
            EncoderLayer(WIDTH, N_HEADS, FEED_FORWARD) for _ in range(n_layers)
        )
        self.level_projection = nn.Linear(N_LEVEL_FEATURES, WIDTH, bias=False)
        self.similarity_projection = nn.Linear(1, WIDTH, bias=False)
        self.set_layer = EncoderLayer(WIDTH, SET_HEADS, SET_FEED_FORWARD)
        self.logit = nn.Linear(WIDTH, 1, bias=False)
        self.similarity_weight = nn.Parameter(torch.tensor(INITIAL_SIMILARITY))
        # By kind, from what an outcome's marker has read: a negated question turns it round.
        self.similarity_gate = nn.Linear(WIDTH, len(INITIAL_SIMILARITY), bias=False)
        with torch.no_grad():
            self.similarity_projection.weight.zero_()
            self.similarity_gate.weight.zero_()
            self.level_projection.weight.mul_(0.1)
            self.logit.weight.mul_(0.1)

    def forward(self, batch: PackedBatch) -> tuple[Tensor, Tensor]:
        """Return logits by decision and outcome (-inf for none), and pooled unit vectors."""
        hidden = self.encode(batch.ids, batch.positions, batch.roles, batch.mask)
        flat = hidden.reshape(-1, WIDTH)
        pooled = flat.float().new_zeros(batch.n_pools + 1, WIDTH)
        pooled = functional.normalize(pooled.index_add(0, batch.pools, flat.float()), dim=-1)
        used = (batch.outcome_pools < batch.n_pools).unsqueeze(-1)
        outcomes = pooled[batch.outcome_pools] * used
        is_absent = batch.compared_pools == batch.n_pools
        texts = pooled[batch.compared_pools].masked_fill(is_absent.unsqueeze(-1), 0.0)
        # The text as a whole, too: what its sentences have in common.
        whole = functional.normalize(texts.sum(1, keepdim=True), dim=-1)
        compared = torch.einsum("dsw,dow->dos", torch.cat([texts, whole], 1), outcomes)
        is_absent = functional.pad(is_absent, (0, 1), value=False).unsqueeze(1)
        similarity = compared.masked_fill(is_absent, float("-inf")).amax(-1)
        return self._decide(flat[batch.markers], similarity, batch), pooled[: batch.n_pools]

    def encode(self, ids: Tensor, positions: Tensor, roles: Tensor, mask: Tensor) -> Tensor:
        """Return the last hidden states, of shape (n_rows, length, width)."""
        hidden = (
            self.word_embeddings(ids)
            + self.position_embeddings(positions)
            + self.role_embeddings(roles)
        )
        hidden = self.embedding_norm(hidden)
        bias = lower = bias_of(mask, hidden.dtype)
        if self.apart:
            lower = bias_of(without_context(mask, roles), hidden.dtype)
        for index, layer in enumerate(self.layers):
            hidden = layer(hidden, lower if index < self.apart else bias)
        return hidden

    def _decide(self, markers: Tensor, similarity: Tensor, batch: PackedBatch) -> Tensor:
        gate = torch.tanh(self.similarity_gate(markers).float())
        kinds = batch.kinds[:, None, None].expand(-1, markers.shape[1], 1)
        similarity = similarity * (1.0 + GATE_SPAN * gate.gather(-1, kinds).squeeze(-1))
        state = (
            markers
            + self.level_projection(batch.levels)
            + self.similarity_projection(similarity.unsqueeze(-1))
        )
        mask = batch.outcome_mask[:, None, None, :].expand(-1, 1, state.shape[1], -1)
        state = self.set_layer(state, bias_of(mask, state.dtype))
        logits: Tensor = self.logit(state).squeeze(-1).float()
        logits = logits + self.similarity_weight[batch.kinds].unsqueeze(-1) * similarity
        return logits.masked_fill(~batch.outcome_mask, float("-inf"))


def without_context(mask: Tensor, roles: Tensor) -> Tensor:
    """Return a mask in which only tokens of a context attend to tokens of a context."""
    is_context = roles == ROLE_CONTEXT
    return mask & (is_context[:, None, :, None] | ~is_context[:, None, None, :])
