"""Points laid out in a plane, near each other where vectors are: PaCMAP (Wang et al., 2021).

Three kinds of pairs pull and push: each row's nearest, some that are nearer than chance (mid-near),
and some at random (further). The mid-near ones place clusters in the first iterations, the nearest
form them, and the further ones keep them apart. A layout goes on from its stored part, with the
same result as without the break.

Written after the paper on NumPy and SciPy alone: the published packages need a compiler at run time.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.maps.neighbours import Floats, Places, nearest, principal
from steelyard.maps.progress import ITERATIONS

#: Iterations until which the mid-near pairs fade, and hold; they are gone after them.
_FADING, _HOLDING = 100, 200
#: Pairs of each row: nearest, mid-near, further.
_NEAREST, _MID_NEAR, _FURTHER = 10, 5, 20
#: Rows among which the nearest are chosen, by distances in the scale of each row's neighbourhood.
_CANDIDATES = 60
#: Random rows of which the second nearest becomes a mid-near pair.
_DRAWN = 6
_RATE, _BETA_1, _BETA_2, _EPSILON = 1.0, 0.9, 0.999, 1e-7
_SEED = 20
#: The spread of the first places.
_START_SPREAD = 1e-2


@dataclass(frozen=True, slots=True)
class Pairs:
    """The places of each row's partners, (n_rows, n) by kind, and where the rows are at first."""

    nearest: Places
    mid_near: Places
    further: Places
    start: Floats

    def encode(self) -> bytes:
        """Return the pairs as bytes."""
        return _encode(
            nearest=self.nearest, mid_near=self.mid_near, further=self.further, start=self.start
        )


@dataclass(slots=True)
class MapLayout:
    """The points after some iterations, with the optimiser's momentum."""

    points: Floats
    mean: Floats
    square: Floats
    iteration: int

    @classmethod
    def begin(cls, pairs: Pairs) -> MapLayout:
        """Return the layout before the first iteration."""
        zeros = np.zeros_like(pairs.start)
        return cls(pairs.start.copy(), zeros, zeros.copy(), 0)

    @property
    def has_ended(self) -> bool:
        """Whether every iteration is done."""
        return self.iteration >= ITERATIONS

    def encode(self) -> bytes:
        """Return the layout as bytes."""
        iteration = np.asarray(self.iteration)
        return _encode(points=self.points, mean=self.mean, square=self.square, iteration=iteration)


def decode_pairs(data: bytes) -> Pairs:
    """Return the pairs that bytes encode."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return Pairs(arrays["nearest"], arrays["mid_near"], arrays["further"], arrays["start"])


def decode_layout(data: bytes) -> MapLayout:
    """Return the layout that bytes encode."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return MapLayout(
            arrays["points"], arrays["mean"], arrays["square"], int(arrays["iteration"])
        )


def find_pairs(vectors: Floats, is_stopped: Callable[[], bool] = lambda: False) -> Pairs:
    """Return the pairs of rows, and first places on the two widest axes; ``StoppedError`` once stopped."""
    n_rows = len(vectors)
    axes = principal(vectors, _SEED)
    start = np.zeros((n_rows, 2), dtype=np.float32)
    start[:, : min(2, axes.shape[1])] = axes[:, :2] * _START_SPREAD
    rng = np.random.default_rng(_SEED)
    # Equal contexts start a little apart: two at one point would never separate.
    start += rng.normal(0, _START_SPREAD * 1e-3, start.shape).astype(np.float32)
    if n_rows < 2:
        none = np.zeros((n_rows, 0), dtype=np.int32)
        return Pairs(none, none, none, start)
    candidates, distances = nearest(axes, _CANDIDATES, _SEED, is_stopped)
    reach = np.sqrt(distances[:, 3:6].mean(axis=1)) if candidates.shape[1] > 3 else np.ones(n_rows)
    reach = np.maximum(reach, 1e-6).astype(np.float32)
    scaled = distances / (reach[:, None] * reach[candidates])
    order = np.argsort(scaled, axis=1, kind="stable")[:, :_NEAREST]
    return Pairs(
        np.take_along_axis(candidates, order, axis=1),
        _mid_near(axes, rng),
        rng.integers(0, n_rows, (n_rows, min(_FURTHER, n_rows - 1)), dtype=np.int32),
        start,
    )


def iterate(layout: MapLayout, pairs: Pairs, n: int, is_stopped: Callable[[], bool]) -> None:
    """Run up to ``n`` more iterations; fewer at the end, or when ``is_stopped`` says so."""
    forces = [_Force(links) for links in (pairs.nearest, pairs.mid_near, pairs.further)]
    for _ in range(n):
        if layout.has_ended or is_stopped():
            return
        near, middle, far = _weights(layout.iteration)
        pull = forces[0].gradient(layout.points, 20 * near, 10)
        if middle:
            pull += forces[1].gradient(layout.points, 20_000 * middle, 10_000)
        pull += forces[2].gradient(layout.points, -2 * far, 1)
        _step(layout, pull)


class _Force:
    """Pairs of one kind: their force on the points is two products with a sparse matrix."""

    def __init__(self, partners: Places) -> None:
        n_rows, self._n = partners.shape
        self._partners = partners
        ends = np.arange(0, partners.size + 1, max(self._n, 1), dtype=np.int64)[: n_rows + 1]
        if self._n == 0:
            ends = np.zeros(n_rows + 1, dtype=np.int64)
        weights = np.zeros(partners.size, dtype=np.float32)
        from scipy.sparse import csr_matrix  # noqa: PLC0415 - each process of jobs imports this module

        self._matrix = csr_matrix((weights, partners.ravel(), ends), shape=(n_rows, n_rows))

    def gradient(self, points: Floats, strength: float, reach: float) -> Floats:
        """Return the gradient: of each pair, its weight times the difference, at both its ends.

        The weight of a pair is the strength over the square of its distance and the reach.
        """
        if not self._n:
            return np.zeros_like(points)
        apart = np.ones(self._partners.shape, dtype=np.float32)
        for axis in (0, 1):
            along = np.ascontiguousarray(points[:, axis])
            between = along[:, None] - along[self._partners]
            between *= between
            apart += between
        self._matrix.data = (np.float32(strength) / (np.float32(reach) + apart) ** 2).ravel()
        # A third column of ones sums the weights of either end.
        wide = np.concatenate([points, np.ones((len(points), 1), dtype=np.float32)], axis=1)
        both = self._matrix @ wide + self._matrix.T @ wide
        gradient: Floats = points * both[:, 2:] - both[:, :2]
        return gradient


def _mid_near(vectors: Floats, rng: np.random.Generator) -> Places:
    """Return, of each row, some that are the second nearest of a few random ones."""
    n_rows = len(vectors)
    chosen = np.empty((n_rows, _MID_NEAR), dtype=np.int32)
    block = 8_192
    for column in range(_MID_NEAR):
        drawn = rng.integers(0, n_rows, (n_rows, _DRAWN), dtype=np.int32)
        for start in range(0, n_rows, block):
            some = drawn[start : start + block]
            between = vectors[some] - vectors[start : start + block, None, :]
            apart = np.einsum("ijk,ijk->ij", between, between)
            second = np.argsort(apart, axis=1, kind="stable")[:, 1:2]
            chosen[start : start + block, column] = np.take_along_axis(some, second, axis=1)[:, 0]
    return chosen


def _weights(iteration: int) -> tuple[float, float, float]:
    """Return the weights of nearest, mid-near and further pairs in an iteration."""
    if iteration < _FADING:
        passed = iteration / _FADING
        return 2.0, 1000.0 * (1 - passed) + 3.0 * passed, 1.0
    return (3.0, 3.0, 1.0) if iteration < _HOLDING else (1.0, 0.0, 1.0)


def _step(layout: MapLayout, gradient: Floats) -> None:
    """Move the points as Adam does."""
    layout.iteration += 1
    n = layout.iteration
    layout.mean += (1 - _BETA_1) * (gradient - layout.mean)
    layout.square += (1 - _BETA_2) * (gradient * gradient - layout.square)
    rate = _RATE * np.sqrt(1 - _BETA_2**n) / (1 - _BETA_1**n)
    layout.points -= (rate * layout.mean / (np.sqrt(layout.square) + _EPSILON)).astype(np.float32)


def _encode(**arrays: NDArray[np.generic]) -> bytes:
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)
    return written.getvalue()
