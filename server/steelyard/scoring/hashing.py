"""A scorer without a model, for tests of applications: fixed answers that mean nothing.

It keeps every promise of a real scorer: the same request always has the same answer, on every
machine; a decision's answer depends on its own context, question and outcomes alone; permuting
outcomes permutes their probabilities; and nothing that shares a batch matters.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.protocol import ScoredDecision

_WORD = r"\w+|[^\w\s]"
_BYTES_PER_NUMBER = 4
_LARGEST_NUMBER = 2**32 - 1
_DIGEST_BYTES = 64
#: Channels of the vectors of texts.
_CHANNELS = 64


class HashingScorer:
    """A scorer whose logits come from a keyed hash of the texts; thread-safe."""

    def __init__(
        self, key: str = "", *, name: str = "hashing", scale: float = 3.0, width: int = 8
    ) -> None:
        if not 1 <= width < _DIGEST_BYTES // _BYTES_PER_NUMBER:
            raise ValueError(f"The width is {width}; use 1 to 15.")
        self._key = hashlib.blake2b(key.encode()).digest()
        self.name, self.engine = name, "hashing"
        self._scale = scale
        self._width = width
        self._is_open = True

    @property
    def sha256(self) -> str:
        """Identifies the answers: the key, the scale and the width."""
        made_of = self._key + f"{self._scale!r} {self._width}".encode()
        return hashlib.sha256(made_of).hexdigest()

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given."""
        if not self._is_open:
            raise EngineUnavailableError("The hashing scorer was closed; make another.")
        return [
            [self._score(request.context, decision) for decision in request.decisions]
            for request in requests
        ]

    # Not named ``embed``: heads would learn from it, and it knows no more than their own n-grams.
    def embed_words(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector of each text, (n_texts, 64): those that share words are alike."""
        if not self._is_open:
            raise EngineUnavailableError("The hashing scorer was closed; make another.")
        vectors = np.zeros((len(texts), _CHANNELS), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in re.findall(_WORD, text.lower()):
                hashed = zlib.crc32(word.encode("utf-8", "surrogatepass"))
                vector[hashed % _CHANNELS] += 1.0 if hashed & 1024 else -1.0
        vectors[~vectors.any(axis=1), 0] = 1.0
        lengths = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32, copy=False)
        return unit

    def close(self) -> None:
        """Refuse every later ``score``."""
        self._is_open = False

    def _score(self, context: str, decision: RenderedDecision) -> ScoredDecision:
        numbers = np.stack(
            [
                self._numbers(context, decision.kind, decision.question, outcome)
                for outcome in decision.outcomes
            ]
        )
        return ScoredDecision(
            logits=self._scale * numbers[:, 0], marker_vectors=numbers[:, 1 : self._width + 1]
        )

    def _numbers(self, *texts: str) -> NDArray[np.float32]:
        """Return 16 numbers from -1 to 1."""
        digest = hashlib.blake2b(key=self._key, digest_size=_DIGEST_BYTES)
        for text in texts:
            encoded = text.encode()
            # The length keeps ("ab", "c") apart from ("a", "bc").
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        words = np.frombuffer(digest.digest(), dtype="<u4")
        return (words / _LARGEST_NUMBER * 2 - 1).astype(np.float32)


class WordCounter:
    """Counts words and punctuation marks: a token counter that needs no file."""

    name = "words"
    revision = "1"
    sha256 = hashlib.sha256(_WORD.encode()).hexdigest()

    def __init__(self) -> None:
        self._pattern = re.compile(_WORD)

    def least(self, text: str) -> int:
        """Count the words of a text."""
        return self.count(text)

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._pattern.findall(text))
