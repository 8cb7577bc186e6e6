"""Static vectors: a word of the base's vocabulary has the same one in every text.

Heads of words alone learn of a word from words like it, and so know some that no training row has. What
they learn is folded into the weights of n-grams: what serves reads no vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from steelyard.scoring.ngrams import Hashes, NgramTable, hash_words
from steelyard.scoring.protocol import Scorer

Floats = NDArray[np.float32]

#: Principal components of the vectors that are kept.
_COMPONENTS = 128


@dataclass(frozen=True, slots=True, eq=False)
class StaticWords:
    """Words by their hashes, the commonest first, and their vectors."""

    hashes: Hashes
    vectors: Floats  # (n, n_components)

    @classmethod
    def of(cls, scorer: Scorer) -> StaticWords | None:
        """Return those of a base model; ``None`` where it has no vocabulary of words here."""
        static_words = getattr(scorer, "static_words", None)
        words, vectors = ([], None) if static_words is None else static_words()
        if not words:
            return None
        centred = vectors - vectors.mean(axis=0)
        # One thread, as in all fits: sums do not depend on the number of cores.
        with threadpool_limits(1, user_api="blas"):
            _, directions = eigh(centred.T @ centred)
            return cls(hash_words(words), centred @ directions[:, -_COMPONENTS:])

    def extend(self, table: NgramTable, n_texts: int, most: int) -> tuple[NgramTable, Floats]:
        """Return a table with the commonest words too, and the vector of each of its columns."""
        hashes, vectors = self.hashes[:most], self.vectors[:most]
        columns = np.union1d(table.columns, hashes)
        # A word that no text has is as rare as can be.
        rarity = np.full(len(columns), np.log(1 + n_texts) + 1, np.float32)
        rarity[np.searchsorted(columns, table.columns)] = table.rarity
        of_columns = np.zeros((len(columns), vectors.shape[1]), np.float32)
        of_columns[np.searchsorted(columns, hashes)] = vectors
        return NgramTable(columns, rarity), of_columns
