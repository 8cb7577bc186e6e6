"""The inputs and outputs of a pass, and its decisions as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from steelyard.scoring.rows import MAX_KEYS, PassRows, keep_summed, keep_tokens

if TYPE_CHECKING:
    from steelyard.scoring.engine import Tensors

#: Sizes that a pass's inputs need besides its rows.
WIDTH, N_LAYERS, N_HEADS = 384, 6, 12
HEAD = WIDTH // N_HEADS
#: Kinds in the order of the graph's ``kinds`` input.
KINDS = ("single", "binary", "ordinal")
#: Values of ``marker_index`` that are no token: the vector is given; there is no outcome.
GIVEN, ABSENT = -1, -2
#: The channel of a pool that no token adds to.
NO_POOL = -2
PAST_OUTPUTS = tuple(f"{part}_{i}" for i in range(N_LAYERS) for part in ("key", "value"))
#: Keys of a long past that are weighed at once. A matrix product adds up the counts of weights in runs
#: of so many, and the values in runs of half: so chunks have the bits of one past.
CHUNK = 2 * MAX_KEYS


@dataclass(frozen=True, slots=True)
class ReadTokens:
    """Tokens that a pass has read: the channel of each, and its past outputs (n_tokens, width)."""

    channels: NDArray[np.int32]
    tensors: Tensors

    def part(self, start: int, stop: int) -> ReadTokens:
        """Return a run of the tokens."""
        tensors = {name: tensor[start:stop] for name, tensor in self.tensors.items()}
        return ReadTokens(self.channels[start:stop], tensors)


@dataclass(frozen=True, slots=True)
class Past:
    """Keys and values of earlier passes, per layer, and the channels of their tokens.

    ``channels`` is int32 of shape (n_past,); keys and values are float32 of (n_heads, n_past,
    head), of all layers or of the highest.
    """

    channels: NDArray[np.int32]
    keys: tuple[NDArray[np.float32], ...]
    values: tuple[NDArray[np.float32], ...]

    @property
    def layers(self) -> range:
        """The layers that keys and values are of."""
        return range(N_LAYERS - len(self.keys), N_LAYERS)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs of a pass for tokens that are to join this past."""
        return PAST_OUTPUTS[2 * self.layers.start :]

    @property
    def n_at_once(self) -> int:
        """Number of keys that a pass weighs at the same time."""
        return len(self.channels)

    def tensors(self) -> Tensors:
        """Return the graph's inputs."""
        tensors: Tensors = {"past_channels": self.channels}
        for i, key, value in zip(self.layers, self.keys, self.values, strict=True):
            tensors[f"past_key_{i}"] = key
            tensors[f"past_value_{i}"] = value
        return tensors

    def extended(self, parts: Iterable[ReadTokens], n_tokens: int) -> Past:
        """Return this past with so many tokens more, in their order; parts are let go of one by one."""
        start, end = len(self.channels), len(self.channels) + n_tokens
        channels = np.empty(end, np.int32)
        channels[:start] = self.channels
        tensors = {name: np.empty((N_HEADS, end, HEAD), np.float32) for name in self.outputs}
        for name, tensor in tensors.items():
            tensor[:, :start] = self.tensors()[f"past_{name}"]
        for part in parts:
            stop = start + len(part.channels)
            channels[start:stop] = part.channels
            for name, tensor in tensors.items():
                read = part.tensors[name].reshape(-1, N_HEADS, HEAD)
                tensor[:, start:stop] = read.swapaxes(0, 1)
            start = stop
        keys, values = (
            tuple(tensors[f"{name}_{i}"] for i in self.layers) for name in ("key", "value")
        )
        return Past(channels, keys, values)


@dataclass(frozen=True, slots=True)
class LongPast:
    """The inputs of the highest layers for tokens of earlier passes, and the tokens' channels.

    The graph for long contexts reads it in chunks: ``channels`` is int32 of (n_chunks, ``CHUNK``), and
    ``inputs`` has of each layer (n_chunks, ``CHUNK``, width), uint8 where the graph is int8. The first
    of the ``n_tokens`` is heard by none, as in ``NO_PAST``, and so are those after the last.
    """

    n_tokens: int
    channels: NDArray[np.int32]
    inputs: tuple[NDArray[np.generic], ...]
    n_at_once = CHUNK

    @property
    def layers(self) -> range:
        """The layers that inputs are of."""
        return range(N_LAYERS - len(self.inputs), N_LAYERS)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs of a pass for tokens that are to join this past."""
        return tuple(f"input_{i}" for i in self.layers)

    def tensors(self) -> Tensors:
        """Return the graph's inputs."""
        tensors: Tensors = {"past_channels": self.channels}
        tensors |= {f"past_{name}": of for name, of in zip(self.outputs, self.inputs, strict=True)}
        return tensors

    def extended(self, parts: Iterable[ReadTokens], n_tokens: int) -> LongPast:
        """Return this past with so many tokens more, in their order; parts are let go of one by one."""
        start, end = self.n_tokens, self.n_tokens + n_tokens
        n_chunks = -(-end // CHUNK)
        channels = np.zeros(n_chunks * CHUNK, np.int32)
        channels[: self.channels.size] = self.channels.reshape(-1)
        inputs = [np.zeros((n_chunks * CHUNK, WIDTH), of.dtype) for of in self.inputs]
        for tensor, before in zip(inputs, self.inputs, strict=True):
            tensor[: self.channels.size] = before.reshape(-1, WIDTH)
        for part in parts:
            stop = start + len(part.channels)
            channels[start:stop] = part.channels
            for name, tensor in zip(self.outputs, inputs, strict=True):
                tensor[start:stop] = part.tensors[name]
            start = stop
        chunks = tuple(tensor.reshape(n_chunks, CHUNK, WIDTH) for tensor in inputs)
        return LongPast(end, channels.reshape(n_chunks, CHUNK), chunks)


AnyPast = Past | LongPast
#: One past token that no token listens to: axes of size zero are a runtime's weak spot.
NO_PAST = Past(
    np.zeros(1, np.int32),
    (np.zeros((N_HEADS, 1, HEAD), np.float32),) * N_LAYERS,
    (np.zeros((N_HEADS, 1, HEAD), np.float32),) * N_LAYERS,
)


def no_past(apart: int) -> Past:
    """Return no past of the layers above the lowest ``apart``."""
    return Past(NO_PAST.channels, NO_PAST.keys[apart:], NO_PAST.values[apart:])


def no_long_past(apart: int, kind: DTypeLike) -> LongPast:
    """Return no past of the layers above the lowest ``apart``, whose inputs are of a kind."""
    inputs = (np.zeros((0, CHUNK, WIDTH), kind),) * (N_LAYERS - apart)
    return LongPast(1, np.zeros((0, CHUNK), np.int32), inputs)


def tokens_read(rows: PassRows, outputs: Tensors, names: Iterable[str]) -> ReadTokens:
    """Return the tokens of a pass, row after row, with the outputs of these names."""
    return ReadTokens(
        rows.blocks[:, :, 1].reshape(-1),
        {name: outputs[name].reshape(-1, WIDTH) for name in names},
    )


@dataclass(frozen=True, slots=True)
class PassDecision:
    """A decision in a pass.

    ``markers`` has the flat token index of each marker, or ``GIVEN``; ``given`` the marker vectors
    of earlier passes, (n_outcomes, width). ``vectors`` are those of the outcomes' texts alone, of
    length one, or None where similarity is not used; ``similarity``, (n_outcomes,), stands instead
    where it is known before the pass.
    """

    kind: str
    markers: NDArray[np.int32]
    vectors: NDArray[np.float32] | None
    pool: int
    given: NDArray[np.float32] | None = None
    similarity: NDArray[np.float32] | None = None


#: A pass that only encodes still has one decision, with one absent outcome.
NO_DECISION = PassDecision("single", np.full(1, ABSENT, np.int32), None, 0)


def pass_inputs(
    rows: PassRows,
    decisions: Sequence[PassDecision],
    pool_channels: Sequence[int],
    *,
    past: AnyPast = NO_PAST,
    pooled_past: NDArray[np.float32] | None = None,
) -> Tensors:
    """Return the graph's inputs for a pass.

    ``pool_channels`` is the channel of the tokens of each pooled context, at least one, and
    ``pooled_past``, (n_pools, width), has their sums over tokens of earlier passes. Rows with
    states are for the graph of the upper layers.
    """
    n_outcomes = max(len(decision.markers) for decision in decisions)
    shape = (len(decisions), n_outcomes)
    markers = np.full(shape, ABSENT, np.int32)
    given = np.zeros((*shape, WIDTH), np.float32)
    vectors = np.zeros((*shape, WIDTH), np.float32)
    levels = np.zeros((*shape, 3), np.float32)
    for index, decision in enumerate(decisions):
        n = len(decision.markers)
        markers[index, :n] = decision.markers
        levels[index, :n] = level_features(decision.kind, n)
        if decision.vectors is not None:
            vectors[index, :n] = decision.vectors
        if decision.given is not None:
            given[index, :n] = decision.given
        if decision.similarity is not None:
            vectors[index, :n, 0] = decision.similarity
    if pooled_past is None:
        pooled_past = np.zeros((len(pool_channels), WIDTH), np.float32)
    pools = [decision.pool for decision in decisions]
    if any(decision.similarity is not None for decision in decisions):
        # A pool that no token adds to, of which a vector's first number is the cosine.
        pools = [
            len(pool_channels) if decision.similarity is not None else decision.pool
            for decision in decisions
        ]
        pool_channels = [*pool_channels, NO_POOL]
        pooled_past = np.concatenate([pooled_past, np.eye(1, WIDTH, dtype=np.float32)])
    if rows.states is None:
        tokens = token_inputs(rows)
    else:
        tokens, markers = _upper_inputs(rows, rows.states, markers, pool_channels)
    return {
        **tokens,
        "blocks": rows.blocks,
        "context_index": rows.context_keys,
        "key_index": rows.keys,
        "pool_channels": np.asarray(pool_channels, np.int32),
        "pooled_past": pooled_past,
        "marker_index": markers,
        "marker_past": given,
        "outcome_vectors": vectors,
        "levels": levels,
        "kinds": np.asarray([KINDS.index(d.kind) for d in decisions], np.int32),
        "context_pool": np.asarray(pools, np.int32),
        **past.tensors(),
    }


def level_features(kind: str, n_outcomes: int) -> NDArray[np.float32]:
    """Return the level encoding of outcomes, (n_outcomes, 3): zeros unless the decision is ordinal.

    Is ordinal, level from 0 to 1, its square.
    """
    features = np.zeros((n_outcomes, 3), np.float32)
    if kind == "ordinal":
        level = np.arange(n_outcomes, dtype=np.float32) / max(n_outcomes - 1, 1)
        features[:, 0], features[:, 1], features[:, 2] = 1.0, level, level * level
    return features


def token_inputs(rows: PassRows) -> Tensors:
    """Return the inputs of a pass's token embedding."""
    return {"input_ids": rows.ids, "position_ids": rows.positions, "role_ids": rows.roles}


def lower_inputs(rows: PassRows) -> Tensors:
    """Return the inputs of the graph of the lowest layers; the rows' keys are joint."""
    return {**token_inputs(rows), "blocks": rows.blocks, "key_index": rows.keys}


def _upper_inputs(
    rows: PassRows,
    states: NDArray[np.float32],
    markers: NDArray[np.int32],
    pool_channels: Sequence[int],
) -> tuple[Tensors, NDArray[np.int32]]:
    """Return the upper layers' inputs in place of token ids, and the markers' places.

    The last layer is for pooled tokens and markers alone, at least one; places are among those.
    """
    is_selected = np.isin(rows.blocks[:, :, 1].reshape(-1), pool_channels)
    if is_selected.any() and (markers < 0).all():
        is_selected[:] = True  # texts alone: each is summed where it lies
    is_selected[markers[markers >= 0]] = True
    is_selected[0] |= not is_selected.any()
    indices = np.flatnonzero(is_selected)
    cut = keep_summed(rows) if rows.is_summed else keep_tokens(rows, indices)
    places = np.zeros(len(is_selected), np.int32)
    if not rows.is_summed:  # else there are no markers
        places[indices] = cut.places
    tokens: Tensors = {
        "states": states,
        "kept": cut.index,
        "kept_blocks": cut.blocks,
        "kept_context_index": cut.context_keys,
        "kept_key_index": cut.keys,
    }
    return tokens, np.where(markers >= 0, places[markers], markers)
