from __future__ import annotations

import numpy as np
import pytest

from steelyard.labeling.choosing import choose, doubt_of, mean_doubt


def unit(*rows):
    vectors = np.array(rows, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_doubt_is_entropy_and_disagreement():
    assert doubt_of([[1.0, 0.0]]) == 0
    assert doubt_of([[0.5, 0.5]]) == pytest.approx(1)
    # Each is sure, and they say the opposite.
    assert doubt_of([[1.0, 0.0], [0.0, 1.0]]) == pytest.approx(1)
    assert doubt_of([[0.25] * 4]) == pytest.approx(1)
    assert 0 < doubt_of([[0.9, 0.1]]) < doubt_of([[0.9, 0.1], [0.6, 0.4]]) < 1
    assert mean_doubt([]) == 1
    assert mean_doubt([[[1.0, 0.0]], [[0.5, 0.5]]]) == pytest.approx(0.5)


def test_the_doubted_and_the_different_come_first():
    vectors = unit((1, 0, 0), (1, 0.01, 0), (0, 1, 0), (0, 0, 1))
    # The second is nearly the first; the fourth is sure.
    assert choose(vectors, [1.0, 0.99, 0.5, 0.0], 4) == [0, 2, 3, 1]
    assert choose(vectors, [1.0, 0.99, 0.5, 0.0], 2) == [0, 2]


def test_equal_contexts_are_chosen_once():
    assert len(choose(unit((1, 0), (1, 0), (0, 1)), [1.0, 1.0, 1.0], 3)) == 2
    assert choose(np.zeros((0, 2), dtype=np.float32), [], 3) == []
