"""Folds by context, and predictions of every row by a model that did not see its context."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]

#: Folds of a decision with few rows, with more, and with many.
_FOLDS = ((400, 8), (4_000, 5))
_MANY_FOLDS = 4


def number_of_folds(n_contexts: int) -> int:
    """Give how many folds to take: more where rows are few and fits cheap.

    Raises
    ------
    ValueError
        When there are fewer than two contexts.
    """
    if n_contexts < 2:
        raise ValueError("One context cannot be folded; give two or more.")
    wanted = next((folds for most, folds in _FOLDS if n_contexts <= most), _MANY_FOLDS)
    return min(wanted, n_contexts)


def assign_folds(contexts: Sequence[str], labels: NDArray[np.intp], seed: int) -> Indices:
    """Put rows into folds: a context's rows into one, and every label's into all alike.

    Parameters
    ----------
    contexts : sequence of str
        Of every row; its SHA-256.
    labels : intp array of shape (n,)
        The top outcome of every row.
    seed : int

    Returns
    -------
    intp array of shape (n,)
        Folds from 0; the same whatever the order of rows.
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


def out_of_fold(
    folds: Indices, n_outcomes: int, fit_predict: Callable[[Indices, Indices], NDArray[Any]]
) -> NDArray[np.float64]:
    """Predict every row by a model fitted on the other folds.

    Parameters
    ----------
    folds : intp array of shape (n,)
    n_outcomes : int
    fit_predict : callable
        Takes the rows to fit on and the rows to predict; gives shape (n_predicted, n_outcomes).

    Returns
    -------
    float64 array of shape (n, n_outcomes)
    """
    found = np.zeros((len(folds), n_outcomes))
    for fold in range(int(folds.max()) + 1):
        inside = np.flatnonzero(folds == fold)
        found[inside] = fit_predict(np.flatnonzero(folds != fold), inside)
    return found
