"""Layouts: similar points lie together, an interruption changes nothing, and few rows are no fault."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from steelyard.maps import neighbours
from steelyard.maps.layout import (
    MapLayout,
    decode_layout,
    decode_pairs,
    find_pairs,
    iterate,
)
from steelyard.maps.neighbours import StoppedError, nearest, principal
from steelyard.maps.points import taken_of
from steelyard.maps.progress import ITERATIONS


def clusters(n=400, n_clusters=8, width=24):
    """Vectors around some centres, and whose they are."""
    rng = np.random.default_rng(5)
    whose = rng.integers(0, n_clusters, n)
    centres = rng.normal(0, 1, (n_clusters, width))
    return (centres[whose] + rng.normal(0, 0.3, (n, width))).astype(np.float32), whose


def laid_out(vectors, *, breaks=()):
    """The points of vectors; kept as bytes and read again after the iterations named."""
    pairs = find_pairs(vectors)
    layout = MapLayout.begin(pairs)
    for at in (*breaks, ITERATIONS):
        iterate(layout, pairs, at - layout.iteration, lambda: False)
        pairs, layout = decode_pairs(pairs.encode()), decode_layout(layout.encode())
    assert layout.has_ended
    return layout.points


def test_rows_that_are_alike_lie_together():
    vectors, whose = clusters()
    points = laid_out(vectors)
    assert trustworthiness(vectors, points, n_neighbors=10) > 0.9
    near, _ = nearest(points, 10, 0)
    assert (whose[near] == whose[:, None]).mean() > 0.95


def test_an_interrupted_layout_is_the_same():
    vectors, _ = clusters(150)
    assert np.array_equal(laid_out(vectors, breaks=(3, 120, 300)), laid_out(vectors))


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_have_places_too(n):
    points = laid_out(np.eye(n, 5, dtype=np.float32))
    assert points.shape == (n, 2)
    assert np.isfinite(points).all()


def test_equal_contexts_stay_near_each_other_and_finite():
    assert np.isfinite(laid_out(np.ones((60, 8), dtype=np.float32))).all()


def test_lists_find_nearly_all_that_an_exact_search_finds(monkeypatch):
    vectors, _ = clusters(3_000, n_clusters=40)
    exact, distances = nearest(vectors, 10, 0)
    expected = ((vectors[:, None] - vectors[exact]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-3, atol=1e-3)
    assert not (exact == np.arange(len(vectors))[:, None]).any()
    monkeypatch.setattr(neighbours, "_EXACT_ROWS", 100)
    listed, _ = nearest(vectors, 10, 0)
    shared = [len(set(a) & set(b)) for a, b in zip(exact, listed, strict=True)]
    assert np.mean(shared) > 9.5


def test_a_search_stops_when_it_is_asked_to():
    with pytest.raises(StoppedError):
        nearest(clusters(50)[0], 5, 0, lambda: True)


def test_principal_axes_come_widest_first_and_keep_distances():
    vectors, _ = clusters(200, width=12)
    axes = principal(vectors, 1)
    spread = axes.var(axis=0)
    assert (np.diff(spread) <= 1e-5).all()
    apart = np.linalg.norm(vectors[:20, None] - vectors[None, :20], axis=2)
    np.testing.assert_allclose(
        np.linalg.norm(axes[:20, None] - axes[None, :20], axis=2), apart, atol=1e-3
    )


def test_of_many_rows_some_are_taken_evenly():
    assert taken_of(5, most=5).tolist() == [0, 1, 2, 3, 4]
    taken = taken_of(1_000, most=300)
    assert len(set(taken.tolist())) == 300
    assert set(np.diff(taken)) == {3, 4}
