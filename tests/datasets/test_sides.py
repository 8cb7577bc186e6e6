from __future__ import annotations

import hashlib

import pytest

from steelyard.datasets.frames.picking import count_evaluation, rank_contexts

CONTEXTS = [hashlib.sha256(bytes([number])).digest() for number in range(40)]


@pytest.mark.parametrize(
    ("n_contexts", "fraction", "expected"),
    [
        (0, 0.2, 0),
        (0, 1.0, 0),
        (1, 0.2, 0),
        (1, 0.9, 0),
        (1, 1.0, 1),
        (2, 0.2, 0),
        (2, 0.99, 1),
        (4, 0.1, 0),
        (5, 0.1, 1),
        (5, 0.2, 1),
        (10, 0.25, 2),
        (10, 0.99, 9),
        (10, 1.0, 10),
        (1_000_000, 0.2, 200_000),
    ],
)
def test_how_many_are_put_aside(n_contexts: int, fraction: float, expected: int) -> None:
    assert count_evaluation(n_contexts, fraction) == expected


def test_ranks_are_hashes_of_dataset_and_context() -> None:
    expected = [hashlib.sha256(b"ds_1\n" + context).digest() for context in CONTEXTS]
    assert rank_contexts("ds_1", CONTEXTS) == expected
    assert set(rank_contexts("ds_2", CONTEXTS)).isdisjoint(expected)
