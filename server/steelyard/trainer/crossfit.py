"""Folds by context, so that every row is predicted by a model that did not see its context."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]

#: Folds of a decision with few rows, with more, and with many.
_FOLDS = ((400, 8), (4_000, 5))
_MANY_FOLDS = 4
#: Seeds below this fit every library: scikit-learn takes 32 bits and LightGBM 31.
_SEEDS = 2**31


def number_of_folds(n_contexts: int) -> int:
    """Return how many folds to take: more where rows are few and fits cheap."""
    if n_contexts < 2:
        raise ValueError("One context cannot be folded; give two or more.")
    n_folds = next((folds for most, folds in _FOLDS if n_contexts <= most), _MANY_FOLDS)
    return min(n_folds, n_contexts)


def assign_folds(contexts: Sequence[str], labels: NDArray[np.intp], seed: int) -> Indices:
    """Put rows into folds: a context's rows into one, and every label's into all alike.

    ``labels`` are the rows' top outcomes. The order of rows does not matter.
    """
    label_of: dict[str, int] = {}
    for context, label in zip(contexts, labels.tolist(), strict=True):
        label_of[context] = min(label, label_of.get(context, label))

    def drawn(context: str) -> tuple[int, bytes]:
        return label_of[context], hashlib.sha256(f"{seed} {context}".encode()).digest()

    n_folds = number_of_folds(len(label_of))
    # Dealt out label by label without starting anew, so that folds are of equal size too.
    fold_of = {context: i % n_folds for i, context in enumerate(sorted(label_of, key=drawn))}
    return np.array([fold_of[context] for context in contexts], np.intp)


def library_seed(seed: int) -> int:
    """Return a seed that every library takes; a small one is itself."""
    return seed % _SEEDS
