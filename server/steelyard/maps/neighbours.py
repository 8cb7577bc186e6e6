"""The rows whose vectors are nearest to each row's: exact for few rows, searched in lists for many.

Many vectors are put into lists around centres (k-means of a few rounds), and each is compared with
those of the lists nearest to its own: an inverted file (Jégou, Douze and Schmid, 2011). Everything
is drawn from one seed, so that the same vectors have the same neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Places = NDArray[np.int32]

#: Channels that vectors are brought down to before they are compared.
CHANNELS = 100
#: Up to so many rows, each is compared with all.
_EXACT_ROWS = 4_096
#: Lists that each row is compared with, and rounds of k-means for their centres.
_PROBES, _ROUNDS = 12, 8
#: Rows that the centres and the principal axes are made of, and rows that are compared at a time.
_SAMPLE, _BLOCK = 50_000, 1_024


class StoppedError(Exception):
    """The search was asked to stop."""


def principal(vectors: Floats, seed: int) -> Floats:
    """Return vectors on their principal axes, at most ``CHANNELS``, the widest spread first."""
    some = vectors[_sample(len(vectors), seed)]
    mean = some.mean(axis=0)
    centred = some - mean
    spread, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    main_axes = axes[:, np.argsort(-spread, kind="stable")[:CHANNELS]]
    # An axis has no direction of its own: its largest part is made positive.
    largest = np.abs(main_axes).argmax(axis=0)
    main_axes = main_axes * np.where(
        main_axes[largest, np.arange(main_axes.shape[1])] < 0, -1.0, 1.0
    )
    turned: Floats = ((vectors - mean) @ main_axes.astype(np.float32)).astype(np.float32)
    return turned


def nearest(
    vectors: Floats, n: int, seed: int, is_stopped: Callable[[], bool] = lambda: False
) -> tuple[Places, Floats]:
    """Return each vector's ``n`` nearest others, and squared distances; ``StoppedError`` once stopped."""
    n_rows = len(vectors)
    n = min(n, n_rows - 1)
    nearest_places = np.empty((n_rows, n), dtype=np.int32)
    distances = np.empty((n_rows, n), dtype=np.float32)
    everyone = np.arange(n_rows, dtype=np.int32)
    for members, candidates in _groups(vectors, n, seed):
        compared = everyone if candidates is None else candidates
        others = vectors if candidates is None else vectors[candidates]
        squares = np.einsum("ij,ij->i", others, others)
        for start in range(0, len(members), _BLOCK):
            if is_stopped():
                raise StoppedError
            rows = members[start : start + _BLOCK]
            # The part of a squared distance that depends on the row alone is added at the end.
            apart = squares - 2 * (vectors[rows] @ others.T)
            apart[compared[None, :] == rows[:, None]] = np.inf
            near = np.argpartition(apart, n - 1, axis=1)[:, :n]
            values = np.take_along_axis(apart, near, axis=1)
            order = np.argsort(values, axis=1, kind="stable")
            nearest_places[rows] = compared[np.take_along_axis(near, order, axis=1)]
            own = np.einsum("ij,ij->i", vectors[rows], vectors[rows])
            distances[rows] = np.take_along_axis(values, order, axis=1) + own[:, None]
    np.maximum(distances, 0.0, out=distances)
    return nearest_places, distances


def _groups(vectors: Floats, n: int, seed: int) -> list[tuple[Places, Places | None]]:
    """Return groups of rows and the rows each is compared with; ``None`` for all."""
    n_rows = len(vectors)
    everyone = np.arange(n_rows, dtype=np.int32)
    if n_rows <= _EXACT_ROWS:
        return [(everyone, None)]
    centres = _centres(vectors, int(np.sqrt(n_rows)), seed)
    own = _assign(vectors, centres)
    by_list = np.argsort(own, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(own, minlength=len(centres)))
    lists = np.split(by_list, ends[:-1])
    squares = np.einsum("ij,ij->i", centres, centres)
    groups: list[tuple[Places, Places | None]] = []
    for number, members in enumerate(lists):
        if len(members):
            # Its own list comes first, whatever others are as near.
            apart = squares - 2 * (centres @ centres[number])
            apart[number] = -np.inf
            order = np.argsort(apart, kind="stable")
            sizes = np.cumsum([len(lists[near]) for near in order])
            n_probed = max(_PROBES, int(np.searchsorted(sizes, n + 1)) + 1)
            groups.append((members, np.concatenate([lists[near] for near in order[:n_probed]])))
    return groups


def _centres(vectors: Floats, n: int, seed: int) -> Floats:
    some = vectors[_sample(len(vectors), seed)]
    centres = some[np.random.default_rng(seed).choice(len(some), n, replace=False)].copy()
    for _ in range(_ROUNDS):
        own = _assign(some, centres)
        order = np.argsort(own, kind="stable")
        sizes = np.bincount(own, minlength=n)
        filled = np.flatnonzero(sizes)
        starts = (np.cumsum(sizes) - sizes)[filled]
        sums = np.add.reduceat(some[order], starts, axis=0)
        centres[filled] = sums / sizes[filled, None]
    return centres


def _assign(vectors: Floats, centres: Floats) -> NDArray[np.intp]:
    """Return the place of the nearest centre of each vector."""
    squares = np.einsum("ij,ij->i", centres, centres)
    return np.concatenate(
        [
            (squares - 2 * (vectors[start : start + _BLOCK] @ centres.T)).argmin(axis=1)
            for start in range(0, len(vectors), _BLOCK)
        ]
    )


def _sample(n_rows: int, seed: int) -> NDArray[np.intp]:
    """Return places that are spread over all rows, ascending."""
    if n_rows <= _SAMPLE:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, _SAMPLE, replace=False))
