"""Which side a context is on: a function of the dataset's id and the contexts alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from steelyard.wire.datasets import MAX_FRACTION

#: From this many new contexts on, at least one is put aside.
MIN_CONTEXTS_FOR_ONE = 5


def count_evaluation(n_contexts: int, fraction: float) -> int:
    """Give how many of the new contexts are put aside for evaluation.

    Parameters
    ----------
    n_contexts : int
        New contexts whose side nobody named.
    fraction : float
        0.1 to 1.

    Returns
    -------
    int
        ``round(fraction * n_contexts)``, at least 1 of 5 or more, and all only when the fraction
        is 1.

    Examples
    --------
    >>> count_evaluation(10, 0.2), count_evaluation(5, 0.1), count_evaluation(2, 0.9)
    (2, 1, 1)
    """
    if fraction >= MAX_FRACTION:
        return n_contexts
    least = 1 if n_contexts >= MIN_CONTEXTS_FOR_ONE else 0
    return max(0, min(max(round(fraction * n_contexts), least), n_contexts - 1))


def pick_evaluation(
    dataset_id: str, contexts: Iterable[bytes], fraction: float
) -> NDArray[np.bool_]:
    """Pick the contexts that are put aside for evaluation.

    Parameters
    ----------
    dataset_id : str
        Of the dataset; another one picks others.
    contexts : iterable of bytes
        SHA-256 of every new context, each once, in any order.
    fraction : float
        0.1 to 1.

    Returns
    -------
    array of bool, shape (n_contexts,)
        In the order given: whether the context is for evaluation. Those with the lowest SHA-256
        of dataset id and context are.

    Examples
    --------
    >>> hashes = [bytes([number]) * 32 for number in range(10)]
    >>> picked = pick_evaluation("ds_1", hashes, 0.2)
    >>> again = pick_evaluation("ds_1", hashes[::-1], 0.2)
    >>> int(picked.sum()), bool((picked == again[::-1]).all())
    (2, True)
    """
    start = hashlib.sha256(dataset_id.encode() + b"\n")
    ranks = bytearray()
    for context in contexts:
        rank = start.copy()
        rank.update(context)
        ranks += rank.digest()
    words = np.frombuffer(bytes(ranks), dtype=">u8").reshape(-1, 4)
    is_evaluation = np.zeros(len(words), dtype=np.bool_)
    lowest = np.lexsort(words.T[::-1])[: count_evaluation(len(words), fraction)]
    is_evaluation[lowest] = True
    return is_evaluation
