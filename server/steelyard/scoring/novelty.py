"""How far a text lies from the rows that a model was trained on, among its neighbours there.

By vectors of its base model; of a model that reads words alone, by those that it has in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from steelyard.durable import write_atomically
from steelyard.scoring.ngrams import MANY, Hashes, count_ngrams, hash_ngrams, in_parts

#: Beside the heads: a fine-tune gathers tensors with this prefix. The second is of a model of words alone.
NOVELTY, WORDS_NOVELTY = "heads-novelty.safetensors", "heads-novelty-words.safetensors"
#: Places that words and runs of characters are hashed into.
WORD_WIDTH = 1024
#: Training rows and held-out contexts kept of a model, at most: 0.4 MB, and 2 ms of reading each.
MOST_ROWS, MOST_CONTEXTS = 512, 256
#: Training rows that a distance is the mean of.
_NEIGHBOURS = 5

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class TrainingTexts:
    """Vectors of a sample of the training rows, and where held-out contexts lie among them.

    ``distances`` are those of each row of the sample from its neighbours in it, ``evaluation`` those
    of held-out contexts from theirs there; both ascending.
    """

    vectors: Floats
    distances: Floats
    evaluation: Floats
    of_words: bool = False  # whether the vectors are those of ``word_vectors``

    @classmethod
    def of(
        cls,
        training: Iterable[str],
        evaluation: Iterable[str],
        vectors: Vectors,
        *,
        of_words: bool = False,
    ) -> TrainingTexts:
        """Make them of contexts, of which a bounded and seeded sample is read."""
        rows = vectors(sample(training, MOST_ROWS)).astype(np.float16).astype(np.float32)
        near = rows @ rows.T
        np.fill_diagonal(near, -np.inf)
        distances = np.sort(_distance(near, len(rows) - 1))
        texts = cls(rows, distances, np.zeros(0, np.float32), of_words)
        others = sample(evaluation, MOST_CONTEXTS)
        return (
            replace(texts, evaluation=np.sort(texts.distances_of(vectors(others))))
            if others
            else texts
        )

    @classmethod
    def load(cls, folder: Path) -> TrainingTexts | None:
        """Read a model's sample, ``None`` without one; ``ValueError`` for parts of another version."""
        of_words = (folder / WORDS_NOVELTY).exists()
        path = folder / (WORDS_NOVELTY if of_words else NOVELTY)
        try:
            numbers = load(path.read_bytes())
            vectors = numbers["vectors"].astype(np.float32)
            return cls(vectors, numbers["distances"], numbers["evaluation"], of_words)
        except FileNotFoundError:
            return None
        except (SafetensorError, KeyError) as error:
            raise ValueError(f"{path.name} holds no vectors that this version reads.") from error

    def save(self, folder: Path) -> None:
        """Write them into a folder; equal texts give equal bytes."""
        numbers: dict[str, NDArray[Any]] = {
            "vectors": self.vectors.astype(np.float16),
            "distances": self.distances,
            "evaluation": self.evaluation,
        }
        write_atomically(folder / (WORDS_NOVELTY if self.of_words else NOVELTY), save(numbers))

    def distances_of(self, vectors: Floats) -> Floats:
        """Return how far each vector lies from its neighbours in the sample."""
        return _distance(np.asarray(vectors, np.float32) @ self.vectors.T, len(self.vectors))

    def share_further(self, distance: float) -> float:
        """Return the share of the training rows that lie further out than a distance."""
        n = len(self.distances)
        return (n - int(np.searchsorted(self.distances, distance, side="right"))) / n

    def limit(self, false_alarms: float) -> float | None:
        """Return the distance beyond which contexts like the held-out ones lie at most so often.

        ``None`` where there are too few held-out contexts to say.
        """
        rank = int(np.floor(false_alarms * (len(self.evaluation) + 1) + 1e-9))
        # Beyond the k-th furthest of n, another lies with a probability of k in n + 1, at most.
        return float(self.evaluation[-rank]) if rank else None


Vectors = Callable[[Sequence[str]], Floats]


def word_vectors(texts: Sequence[str]) -> Floats:
    """Return a unit vector of each text, (n_texts, WORD_WIDTH), of its words and runs of characters."""
    vectors = np.zeros((len(texts), WORD_WIDTH), np.float32)
    if len(texts) < MANY:
        for vector, text in zip(vectors, texts, strict=True):
            for hashes, counts in hash_ngrams(text):
                np.add.at(vector, *_placed(hashes, counts))
        texts = ()
    start = 0
    for part in in_parts(texts):
        for owners, hashes, counts in count_ngrams(part):
            places, values = _placed(hashes, counts)
            np.add.at(vectors, (start + owners, places), values)
        start += len(part)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
    vectors /= np.maximum(lengths, np.float32(1e-9))
    return vectors


def _placed(hashes: Hashes, counts: Floats) -> tuple[Hashes, NDArray[np.float64]]:
    """Return the places of n-grams in a vector, and what they add there."""
    # Two that fall into one place cancel out as often as they add up.
    return hashes % WORD_WIDTH, np.where(hashes >> 31, -1.0, 1.0) * (1 + np.log(counts))


def sample(texts: Iterable[str], most: int) -> list[str]:
    """Return distinct texts, the same ones whatever their order."""
    drawn = sorted(set(texts), key=lambda text: hashlib.sha256(text.encode()).digest())
    return drawn[:most]


def _distance(near: Floats, n: int) -> Floats:
    """Return the mean distance from the nearest, of cosines in rows."""
    k = max(min(_NEIGHBOURS, n), 1)  # where there is one row alone, nothing is near it
    nearest = np.partition(near, near.shape[1] - k, axis=1)[:, near.shape[1] - k :]
    return np.asarray(1 - nearest.mean(axis=1), np.float32)
