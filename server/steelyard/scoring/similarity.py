"""Outcome texts encoded alone, kept across requests: the similarity channel's other half."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.recent import Recent
from steelyard.scoring.packing import lay_out_text
from steelyard.scoring.passes import NO_DECISION, NO_POOL, WIDTH, no_past, pass_inputs
from steelyard.scoring.rows import SUMMED, Tokens, fill_rows, groups_of, windows_of

if TYPE_CHECKING:
    from steelyard.scoring.engine import PassEngine

#: Vectors kept, 1.5 kB each, and the tokens of a text, at most, for its vector to be: a long one,
#: four bytes a token, is asked once as a rule. With its two special tokens such a text's sum is made
#: in one go, so that the vector has the same bits whatever text shares its pass.
MAX_VECTORS, MAX_CACHED_TOKENS = 65_536, SUMMED - 2
#: Tokens of a pass: what they need then stays in the cache of a core. Passes of 4,096 take a third
#: more time a token, and several times the memory.
PASS_TOKENS = 512


class LowerReader(Protocol):
    """Reads tokens in the layers below the context, as ``steelyard.scoring.lower`` does."""

    apart: int

    def read(self, units: Sequence[Tokens]) -> list[Tokens]:
        """Return blocks that listen to no other, with their states."""
        ...


class OutcomeVectors:
    """A bounded store of unit vectors of outcome texts, least recently used out first; thread-safe.

    A text's vector depends on the text alone.
    """

    def __init__(
        self,
        engine: PassEngine,
        max_vectors: int = MAX_VECTORS,
        lower: LowerReader | None = None,
    ) -> None:
        self.pass_engine, self._lower = engine, lower
        self._past = no_past(lower.apart if lower else 0)
        self._vectors: Recent[bytes, NDArray[np.float32]] = Recent(max_vectors)

    def get(self, texts: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], NDArray[np.float32]]:
        """Return the unit vector of each text of token ids, encoding those not yet known."""
        vectors = {}
        keys = {
            text: array("I", text).tobytes() for text in texts if len(text) <= MAX_CACHED_TOKENS
        }
        for text, key in keys.items():
            vector = self._vectors.find(key)
            if vector is not None:
                vectors[text] = vector
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if not missing:
            return vectors
        # A text that is not stored is encoded alone: its last bits are the same in every request.
        alone = [[text] for text in missing if text not in keys]
        for group in groups_of([text for text in missing if text in keys], PASS_TOKENS) + alone:
            vectors.update(zip(group, self._encode(group), strict=True))
        for text in missing:
            if text in keys:
                # A view of one row would keep the whole pass in memory.
                self._vectors.note(keys[text], vectors[text].copy())
        return vectors

    def encode(self, texts: Sequence[tuple[int, ...]]) -> NDArray[np.float32]:
        """Return the unit vectors of texts, (n_texts, width), without storing them."""
        parts = [self._encode(group) for group in groups_of(texts, PASS_TOKENS)]
        return np.concatenate(parts) if parts else np.zeros((0, WIDTH), np.float32)

    def _encode(self, texts: Sequence[tuple[int, ...]]) -> NDArray[np.float32]:
        units, channels, offset = [], [], 0
        for layout in map(lay_out_text, texts):
            channels.append(offset + layout.context_channel)
            units.extend(windows_of(layout, offset))
            offset += layout.n_ids
        # One pool more: a matrix of one row is not multiplied as others are.
        channels.append(NO_POOL)
        pooled = np.zeros((len(channels), WIDTH), np.float32)
        for group in groups_of(units, PASS_TOKENS):
            read = self._lower.read(group) if self._lower else group
            rows = fill_rows(read, is_summed=True)
            inputs = pass_inputs(rows, [NO_DECISION], channels, past=self._past, pooled_past=pooled)
            pooled = np.asarray(self.pass_engine.run(inputs, ["pooled"])["pooled"], np.float32)
        pooled = pooled[:-1]
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(pooled, np.maximum(lengths, 1e-12), dtype=np.float32)
        return unit
